// Package gate limits how many requests a `trimtab gate` lets its service work on at once, through
// the admin API of the gate:
//
//	1 ≤ requests in service ≤ max of the envelope
//
// Within that the gate's own rule moves the limit. The envelope ends by itself a [Lease] after it
// was set, and a Read of the knob that set it sets it again: an actuator reads its knobs every few
// seconds. Where trimtab is killed, or reads no more, the gate is free without anybody's help.
//
// The gate sends no identity: one that restarted has no envelope, and gets one with the next plan.
//
//	knob, err := gate.Open(gate.Config{URL: "unix:/run/trimtab/checkout.gate"})
//	…
//	err = knob.Write(ctx, trimtab.Units(40))
package gate
