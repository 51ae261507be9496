// Package baseline holds the rules that Cilantro is compared with, and the two
// that operators know from autoscalers. Each looks at what the jobs delivered
// in the last round and says what they get in the next; none has bounds for
// what it believes.
//
//	greedy-egalitarian  one unit from each of the better half to the worse
//	minerva             a' ∝ a/u
//	miad                demand 1.5 a when the SLO is missed, else a − 1
//	parties             demand + 20 when missed or nearly, − 5 when comfortable
//	ernest              demand from y = θ₁ + θ₂ l/a + θ₃ log a + θ₄ a, θ >= 0
//	quasar              demand from a matrix of jobs and allocations, completed
//	hpa                 demand ⌈a · metric/target⌉, tolerance, stabilisation
//	pid                 demand a (1 + P e + I Σe + D Δe)
//
// Rules that say a demand share the capacity by the NJC procedure.
//
// Source: Cilantro (OSDI'23), section 7.1.1 and appendix A.3, where the
// systems are adapted to one resource: Ernest (NSDI'16), Quasar (ASPLOS'14),
// Minerva (SIGCOMM'19), PARTIES (ASPLOS'19), MIAD (TCP). The HPA rule is that
// of Kubernetes' HorizontalPodAutoscaler.
//
// The package has no rule that tries random allocations: see lab/evolve.
package baseline
