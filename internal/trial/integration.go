//go:build integration

package trial

// integration: the tests were built for `make integration`.
const integration = true
