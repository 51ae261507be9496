package trimtab_test

import (
	"testing"

	"github.com/trimtab/trimtab/internal/trial"
)

// The properties of this package take plans of thousands of actions apart, so a test run
// has fewer of them.
func TestMain(m *testing.M) { trial.Main(m, 40) }
