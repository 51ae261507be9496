// Package hosttest is a simulated host that fulfils the contract of actions as the real
// one does: what decides can be tested against the strict thing, without a kernel.
//
// A [Host] refuses plans that are not newer than what it accepted, that ran out, that
// are of another pool or dated ahead. It clamps to the declared bounds, rounds to the
// quantum, compares what it finds with what the plan expects, makes shrinks first, and
// then the grows that fit:
//
//	Σ max(set, in force) + g ≤ min(capacity of the plan, of the host)
//
// Writes may fail, and may take effect late. When the lease ends, the baselines come
// back unless another program has set the knob. A repeated step gets the answer that
// it got before.
//
// Its answers are those of package actuator, value for value; its test hands both the
// same plans. It does not know the host's own limits on falls, floors, applied plans
// and pauses: it is one host of several of its pool.
package hosttest
