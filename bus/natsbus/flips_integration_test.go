//go:build integration

package natsbus

// flips is how many damaged stores are opened.
const flips = 200
