"""Recover the directions of a hierarchical target: one at a time, the strong ones first.

    python examples/recovery_in_five_lines.py

The label of an input of D = 200 normal numbers is sum_i lambda_i (h_i^2 - 1) / sqrt 2, where h_i is
the input along direction i and |lambda_i| falls as i^-0.4. The six leading eigenvectors of
mean((y - ybar) (x x^T - I)) over n samples estimate the six directions.

Printed, one column per direction: n* = D / lambda^2, the order of the number of samples it needs;
then, for growing n, cos^2 of its angle with the estimated space, from 0 (unseen) to 1 (recovered),
and in brackets what the sharp theory says.
"""

# Strong directions show up before the theory says. It is the limit of large D, where a direction
# below its threshold is spread evenly over all D eigenvectors. At D = 200 the labels of few samples
# outweigh the rest, and a label is large where some h_i is: the leading eigenvectors lean towards
# those inputs, and with them towards the strong directions. At n = 5 D the mean cos^2 of the
# strongest one is 0.47 for D = 200, 0.43 for 800, 0.31 for 3200; the theory says 0.27.
from spectral_laws.recovery import Teacher, recover_features, thresholds

teacher = Teacher.draw(dimension=200, degree=1, n_directions=6, gamma=0.4, seed=0)
print("D / lambda^2", *map("{:11.0f}".format, thresholds(teacher.weights, 200)))
for r in recover_features(teacher, [250, 1_000, 4_000, 16_000, 64_000], seed=0):
    print(f"n = {r.sample_size:8}", *map("{:.2f} ({:.2f})".format, r.cos2, r.predicted_cos2))
