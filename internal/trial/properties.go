package trial

import (
	"flag"
	"log"
	"os"
	"strconv"
	"testing"
)

// Some returns few in `make test`, and all in `make integration`: for a test with many similar
// cases that cost much CPU time.
func Some[T any](few, all T) T {
	if integration {
		return all
	}
	return few
}

// Main runs the tests of a package with n cases of each property, instead of rapid's 100, unless
// -rapid.checks is given, as by `make torture`, or the tests are those of `make integration`. It
// is for packages whose properties play long sequences; call it in TestMain.
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
