"""
One row of the loss
===================

What a single row contributes to the loss as the value of one member function varies, and why a
trial of the kernel does not need to look at every member.
"""

import matplotlib.pyplot as plt
import numpy as np

alpha = 0.5
others = np.array([0.6, 1.0, 1.7])  # values of the other member functions on this row
own_weight, other_weight = 0.8, 1.0


def part_of_the_loss(u):
    """Return g(u): the terms of the loss that contain the member's value u."""
    own = own_weight * np.maximum(alpha, u / others).sum()
    return own + other_weight * np.maximum(alpha, others / u).sum()


# %%
# Breakpoints lie at α f_j and f_l / α. Between two of them g is a + S1 u + S2 / u: two numbers per
# row determine how any step within the interval changes the loss.

values = np.linspace(0.15, 4.2, 800)
breakpoints = np.concatenate([alpha * others, others / alpha])

_, axes = plt.subplots(figsize=(7, 4.5))
axes.plot(values, [part_of_the_loss(u) for u in values], label="g(u)")
for position in breakpoints:
    axes.axvline(position, color="0.8", zorder=0)

u = 1.4
s1 = own_weight * (1 / others[u > alpha * others]).sum()
s2 = other_weight * others[alpha * u < others].sum()
smooth = part_of_the_loss(u) + s1 * (values - u) + s2 * (1 / values - 1 / u)
axes.plot(values, smooth, "--", label=f"S1 = {s1:.2f}, S2 = {s2:.2f}")
axes.plot([u], [part_of_the_loss(u)], "ko")
slack = np.abs(breakpoints - u).min()
axes.axvspan(u - slack, u + slack, color="tab:green", alpha=0.15, label="slack")
axes.set(xlabel="value u of the member function", ylabel="part of the loss", ylim=(4, 14))
axes.legend()
plt.show()
