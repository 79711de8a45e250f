//go:build !linux

package timerslack

import (
	"errors"
	"time"
)

func set(time.Duration) error { return errors.ErrUnsupported }
