"""Payroll by employee and month: pay by role, sums that follow; periods are quarters."""

from __future__ import annotations

import numpy as np
import pandas as pd

from businesses import parts
from businesses.plant import (
    Business,
    Change,
    Row,
    accented,
    add,
    each,
    equals,
    gathered,
    in_year,
    mojibake,
    nothing,
    put,
    stuck,
    swap,
    text,
    times,
    typo,
    wrong_digit,
)

# Department, monthly pay of full time, grade.
ROLES = {
    "cleaner": ("Facility", 2300, "E2"),
    "janitor": ("Facility", 2700, "E4"),
    "clerk": ("Finance", 3100, "E6"),
    "accountant": ("Finance", 4200, "E9"),
    "controller": ("Finance", 5400, "E11"),
    "buyer": ("Purchasing", 3900, "E8"),
    "picker": ("Warehouse", 2500, "E3"),
    "forklift driver": ("Warehouse", 2800, "E4"),
    "foreman": ("Warehouse", 3800, "E8"),
    "fitter": ("Production", 3300, "E7"),
    "welder": ("Production", 3500, "E7"),
    "engineer": ("Engineering", 5600, "E12"),
    "architect": ("Engineering", 6400, "E13"),
    "developer": ("IT", 5500, "E12"),
    "administrator": ("IT", 4600, "E10"),
    "sales agent": ("Sales", 3700, "E8"),
    "key account": ("Sales", 5200, "E11"),
    "recruiter": ("HR", 4000, "E9"),
    "director": ("Management", 11500, "AT"),
}
CENTRES = {
    name: 4000 + 100 * i for i, name in enumerate(sorted({r[0] for r in ROLES.values()}), start=1)
}
N_EMPLOYEES = 345


def draw(seed: int, period: int) -> pd.DataFrame:
    world, rng = parts.generators(seed, period)
    role = np.array(list(ROLES), dtype=object)[parts.pick(N_EMPLOYEES, len(ROLES), world, 0.2)]
    names = parts.people(N_EMPLOYEES, world)
    ibans = [parts.iban("DE", world) for _ in names]
    hours = world.choice([40.0, 35.0, 30.0, 20.0], N_EMPLOYEES, p=[0.65, 0.15, 0.1, 0.1])
    base = np.round(
        np.array([ROLES[r][1] for r in role]) * world.lognormal(0, 0.07, N_EMPLOYEES) * hours / 40,
        -1,
    )
    tax_rate = np.round(world.uniform(0.12, 0.26, N_EMPLOYEES), 3)
    # Some were hired in the periods, the others in the years before.
    hired = pd.Timestamp(2025, 12, 1) - pd.to_timedelta(
        np.where(
            world.random(N_EMPLOYEES) < 0.08,
            world.integers(0, 600, N_EMPLOYEES),
            world.integers(640, 9000, N_EMPLOYEES),
        ),
        unit="D",
    )
    hired = hired.to_period("M").to_timestamp()
    married = world.choice(
        ["single", "married", "divorced", "widowed"], N_EMPLOYEES, p=[0.45, 0.44, 0.09, 0.02]
    )

    frames = []
    for month in _months(period):
        n = N_EMPLOYEES
        salary = np.round(base * (1.025 if month.year == 2025 else 1.0), 2)
        overtime = np.where(
            (rng.random(n) < 0.35) & (role != "director"),
            np.round(2 * rng.gamma(1.5, 3, n)) / 2,
            0.0,
        )
        extra = np.round(overtime * salary / (4.33 * hours) * 1.25, 2)
        bonus = np.where(
            (rng.random(n) < 0.03) | ((role == "sales agent") & (rng.random(n) < 0.5)),
            np.round(salary * rng.uniform(0.05, 0.3, n), -1),
            0.0,
        )
        gross = np.round(salary + extra + bonus, 2)
        tax, social = np.round(gross * tax_rate, 2), np.round(gross * 0.205, 2)
        sick = np.where(rng.random(n) < 0.2, rng.poisson(3, n), 0)
        paid = month + pd.offsets.BMonthEnd(1)
        frame = pd.DataFrame(
            {
                "employee_no": [20_100 + 3 * i for i in range(n)],
                "name": names,
                "month": f"{month:%Y-%m}",
                "department": [ROLES[r][0] for r in role],
                "role": role,
                "grade": [ROLES[r][2] for r in role],
                "cost_centre": [CENTRES[ROLES[r][0]] for r in role],
                "hired_on": hired,
                "marital_status": married,
                "weekly_hours": hours,
                "base": salary,
                "overtime_h": overtime,
                "overtime_pay": extra,
                "bonus": bonus,
                "gross": gross,
                "tax": tax,
                "social": social,
                "net": np.round(gross - tax - social, 2),
                "sick_days": sick,
                "paid_on": paid,
                "iban": ibans,
                "part_time": np.where(hours < 35, "yes", "no"),
            }
        )
        frames.append(frame[hired <= month])
    return pd.concat(frames, ignore_index=True)


def _months(period: int) -> pd.DatetimeIndex:
    if not period:
        return pd.date_range("2024-01-01", periods=12, freq="MS")
    return pd.date_range("2025-01-01", periods=3, freq="MS") + pd.DateOffset(
        months=3 * (period - 1)
    )


def _paid_as(salary: float) -> Change:
    """Pay another salary, in all cells that follow."""

    def change(row: Row, rng: np.random.Generator) -> dict[str, object]:
        base = round(salary * float(rng.uniform(0.95, 1.05)), -1)
        gross = round(base + row["overtime_pay"] + row["bonus"], 2)
        tax, social = round(gross * row["tax"] / row["gross"], 2), round(gross * 0.205, 2)
        return {
            "base": base,
            "gross": gross,
            "tax": tax,
            "social": social,
            "net": round(gross - tax - social, 2),
        }

    return change


MONEY = ("base", "overtime_pay", "bonus", "gross", "tax", "social", "net")
BUSINESS = Business(
    "payroll",
    draw,
    (
        each("time", "hired after the month", in_year("hired_on", 2031, 2052)),
        each("time", "paid in another year", in_year("paid_on", 2015, 2042)),
        each(
            "time",
            "month that does not exist",
            text("month", lambda x: f"{x[:5]}1{3 + int(x[-1]) % 7}"),
            n=2,
        ),
        each(
            "kind",
            "cleaner paid as an engineer",
            _paid_as(5600),
            equals("role", "cleaner", "picker", "janitor"),
        ),
        each(
            "kind",
            "another pay than in other months",
            _paid_as(3000),
            lambda rows: (
                rows["role"].isin(["controller", "architect"]) & (rows["weekly_hours"] == 40)
            ),
            2,
        ),
        each(
            "kind",
            "role of another department",
            put("department", "IT", "HR"),
            equals("role", "welder", "fitter", "picker", "cleaner"),
        ),
        each("text", "wrong checksum of the IBAN", wrong_digit("iban", 4)),
        each("text", "typo of a role", typo("role")),
        each("text", "damaged letters in a name", mojibake("name"), accented("name")),
        each("text", "malformed grade", text("grade", lambda x: f"{x[0]}-{x[1:]}"), n=2),
        each("text", "misspelt truth value", put("part_time", "nein", "noo", "y"), n=2),
        stuck(
            "overtime copied to others",
            "role",
            ("overtime_h", "overtime_pay"),
            5,
            lambda rows: rows["overtime_h"] > 2,
        ),
        gathered("employees with one account", ("iban",), nothing, 4),
        each("rule", "gross is not the sum", add("gross", 200, 900)),
        each("rule", "net is not what is left", add("net", 150, 700)),
        each(
            "rule",
            "overtime without pay",
            put("overtime_pay", 0.0),
            lambda rows: rows["overtime_h"] > 3,
        ),
        each(
            "rule",
            "full time called part time",
            put("part_time", "yes"),
            equals("weekly_hours", 40.0),
        ),
        each("value", "tax times 10", times("tax", 10), n=2),
        each("value", "hours of a month as hours of a week", put("weekly_hours", 173.0, 160.0)),
        each("value", "sick for longer than the month", put("sick_days", 45, 99, 310)),
        each("value", "tax and net exchanged", swap("tax", "net"), n=2),
    ),
    {
        "hired_on": "%Y-%m-%d",
        "paid_on": "%Y-%m-%d",
        "weekly_hours": "g",
        "overtime_h": "g",
        **dict.fromkeys(MONEY, ".2f"),
    },
    lambda rows: rows["month"],
)
