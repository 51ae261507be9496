// Package machines measures planner/machines: how long one filtering of all
// machines takes, what one report costs, how much memory a machine takes, and
// what the candidates cost on the way to the job managers. `trimtab-lab bench
// machines` prints it.
//
// The machines report the dimensions of ROSE's table 2 at random. The rule is
// MMF in mode RP; a tenth of the machines become candidates, as in the paper's
// measurement of synchronisation, and the worst hundredth by CPI, MPKI and
// score are blacklisted.
//
// Source: "ROSE" (IEEE TPDS 2020), 7.3, figures 11 and 12. It does not judge:
// it prints, people read.
package machines
