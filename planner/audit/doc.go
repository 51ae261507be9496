// Package audit says with numbers how fair an allocation is. With d_i the
// demand of workload i, a_i what it has, C the capacities and e_i its
// entitlement, a part of 1,
//
//	satisfaction  u_i(a) = min(1, min_r a_r / d_ir)
//	share         s_i = max_r a_ir / C_r
//	shortfall     max(0, u_i(e_i C) − u_i(a_i))
//	envy          max_j max(0, u_i(a_j e_i / e_j) − u_i(a_i))
//	slack         u_i(a_i + (C − Σ_j a_j)) − u_i(a_i)
//
// An allocation by dominant resource fairness has neither shortfall nor envy
// nor slack, whatever the weights; whole units, minimums, bounded steps and the
// guard can cause some, and the audit shows how much. In a tree of groups e_i is the product
// of the weights' parts on the way down; a group that leaves room gives it to
// its neighbours, so that envy between groups can be above 0. Over several hosts
// slack counts what is free where the workload runs; shortfall and envy are about the
// pool, and so tell what a crowded host costs.
//
// Source: Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011), section 3,
// for the four properties; with weights they are about entitlements, as in
// Parkes, Procaccia and Shah (EC 2012).
//
// Demands are those learnt, right or wrong. A workload whose demand is unknown counts
// with its allocation, and is not judged.
//
//	a := audit.Of(&audit.Pool{Resources: …, Tenants: …})
//	a.Now.Envy, a.Now.Shortfall, a.Now.Slack
package audit
