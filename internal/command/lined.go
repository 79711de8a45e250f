package command

import "errors"

// lined is an error whose message is a list of several lines.
type lined struct{ error }

// Unwrap returns the error itself.
func (l *lined) Unwrap() error { return l.error }

// Lines marks err as a list: it is printed as it is, while all other errors become one line.
func Lines(err error) error { return &lined{err} }

// text is what is printed of an error.
func text(err error) string {
	if errors.As(err, new(*lined)) {
		return err.Error()
	}
	return oneLine(err)
}
