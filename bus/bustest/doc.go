// Package bustest holds the contract of bus.Bus, one test per sentence of
// that package's comment, and a bus in memory for the contract and for the
// simulator. It is not for production: what is on it ends with the process.
//
//	func TestContract(t *testing.T) {
//		bustest.Run(t, func(t *testing.T) bus.Bus { return bustest.NewMemory() })
//	}
package bustest
