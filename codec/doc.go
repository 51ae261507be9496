// Package codec is the form in which the values of package trimtab travel: an
// [Envelope] of versioned JSON, or for spans a slim binary frame ([FrameWriter],
// [ReadFrame]).
//
//	b, err := codec.Encode(v, origin)
//	v, origin, err := codec.Decode(trimtab.KindPlan, b)
//
// Values are validated on both sides. What a peer sends cannot cost its reader
// more than a known multiple of [MaxBytes]. The package sends nothing and keeps
// nothing: packages bus and exporters/record do.
package codec
