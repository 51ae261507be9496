//go:build !integration

package natsbus

// flips is how many damaged stores are opened: one for each kind of file and
// some more. The full number is opened with the tag integration.
const flips = 20
