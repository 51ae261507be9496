package jobs

import (
	"errors"

	"github.com/trimtab/trimtab"
)

func isStale(err error) bool { return errors.Is(err, trimtab.ErrStale) }
