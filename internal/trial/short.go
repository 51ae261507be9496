//go:build !integration

package trial

const integration = false
