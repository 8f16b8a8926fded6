// The view in the address: a link to it shows the same rows in the same order.

function readAddress() {
  // Other addresses, such as those of sections, have no sign of equality.
  return location.hash.includes("=") ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams();
}

function writeAddress(view) {
  const kept = Object.entries(view).filter(([, value]) => value !== undefined && value !== "");
  const hash = kept.length > 0 ? `#${new URLSearchParams(kept)}` : "";
  if (hash !== location.hash) history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
}
