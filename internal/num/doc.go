// Package num holds small numeric helpers that several pure packages share:
// sealed snapshots, and isotonic regression.
//
// A sealed snapshot is one header line, "trimtab <kind> <crc32>", and JSON.
// A changed bit anywhere makes it unreadable rather than slightly wrong:
//
//	b, err := num.Seal("bintree/1", state)
//	err = num.Unseal("bintree/1", b, &state) // errors on any damage
//
// The isotonic regression of y with weights w > 0 is
//
//	argmin Σ wᵢ (mᵢ − yᵢ)²  subject to  m₁ ≤ m₂ ≤ … ≤ mₙ
//
// Source: R. Barlow, H. Brunk, The isotonic regression problem and its dual,
// JASA 67, 1972 (pool adjacent violators).
package num
