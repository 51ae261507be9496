package trial

import "flag"

// Some returns few in `make test`, and all in `make integration`: for a test with many similar
// cases that cost much CPU time.
func Some[T any](few, all T) T {
	if integration {
		return all
	}
	return few
}

// Properties sets the number of cases of each property of a test binary to n, instead of rapid's
// 100, unless -rapid.checks is given, as by `make torture`, or the tests are those of `make
// integration`. It is for packages whose properties play long sequences; call it in TestMain
// before the tests run.
func Properties(n string) error {
	flag.Parse()
	given := integration
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return nil
	}
	return flag.Set("rapid.checks", n)
}
