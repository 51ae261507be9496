// Package cluster closes the loop in memory: reports go to the analyzer step,
// its estimates to the planner step, and an actuator that never fails answers
// the plans with outcomes and holdings. Steps and values are those of
// production; only bus, stores and knobs are left out.
//
//	samples → analyzer → estimates → planner → plans → knobs
//	              ▲                     ▲                │
//	              └────── holdings ─────┴── outcomes ────┘
//
// Source: Cilantro (OSDI'23), section 4 (the loop) and 6 (its rhythms).
//
// The package has no model of workloads: its caller passes in their reports. There is one leader.
// Each workload has one instance on one host unless Config says otherwise.
package cluster
