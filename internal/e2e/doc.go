// Package e2e holds tests that run several stages together on recorded data.
// It exports nothing.
package e2e
