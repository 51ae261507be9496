package path

import (
	"testing"

	"github.com/trimtab/trimtab/internal/trial"
)

func TestMain(m *testing.M) { trial.Main(m, 40) }
