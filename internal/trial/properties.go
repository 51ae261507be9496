package trial

import (
	"flag"
	"log"
	"os"
	"strconv"
	"testing"
)

// Some returns few in `make test`, and all in `make integration`: for a test whose cases cost
// much CPU time and are alike.
func Some[T any](few, all T) T {
	if integration {
		return all
	}
	return few
}

// Main runs the tests of a package whose properties play whole lives, so a test run has
// fewer of them: n cases of each property, instead of rapid's 100, unless -rapid.checks says
// more or less, as `make torture` does, or the tests are those of `make integration`.
func Main(m *testing.M, n int) {
	flag.Parse()
	given := integration
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(m.Run())
}
