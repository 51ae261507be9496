// Package gate limits how many requests a `trimtab gate` lets its service work on at once, through
// the admin API of the gate:
//
//	1 ≤ requests in service ≤ max of the envelope
//
// Below that maximum the gate's own rule moves the limit. The envelope expires a [Lease] after it
// was set. A Read by the knob that set the envelope renews it; an actuator reads its knobs every
// few seconds. If trimtab is killed or stops reading, the envelope expires, and nothing bounds the
// gate's rule any more.
//
// A gate does not identify its process, so trimtab does not notice a restart. A restarted gate has
// no envelope until the next plan sets one.
//
//	knob, err := gate.Open(gate.Config{URL: "unix:/run/trimtab/checkout.gate"})
//	…
//	err = knob.Write(ctx, trimtab.Units(40))
package gate
