//go:build !linux

package timerslack

import (
	"errors"
	"time"
)

func set(time.Duration) error { return errors.ErrUnsupported }

func apply(time.Duration) error { return errors.ErrUnsupported }

func get() (time.Duration, error) { return 0, errors.ErrUnsupported }
