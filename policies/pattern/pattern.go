// Package pattern compiles regular expressions that users wrote.
//
// In go texts; out come expressions of Go, or an error that says what is wrong with one. What an expression may
// become is bounded before it is compiled: a few hundred bytes of nested repetitions take gigabytes, and each match
// takes time in proportion. The package does not bound how many there are.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// What callers branch on. Both stand as long as the text does.
var (
	// ErrInvalid says that a text is no regular expression.
	ErrInvalid = errors.New("no regular expression")
	// ErrTooLarge says that one is, and too large.
	ErrTooLarge = errors.New("too large a regular expression: use a shorter one, or a smaller number of repetitions")
)

// MostWeight is how much an expression may weigh: some 200 KB, and a microsecond for each ten bytes that are looked at.
const MostWeight = 2000

// longest is how many bytes an expression may have: it is parsed before it is weighed.
const longest = 16 << 10

// Compile returns an expression. Its errors are ErrInvalid and ErrTooLarge, and do not quote the text.
func Compile(text string) (*regexp.Regexp, error) {
	if _, err := Weigh(text); err != nil {
		return nil, err
	}
	out, err := regexp.Compile(text)
	if err != nil {
		return nil, ErrInvalid
	}
	return out, nil
}

// Weigh returns about how many instructions an expression becomes, without compiling it. Its errors are those of Compile.
func Weigh(text string) (int, error) {
	if len(text) > longest {
		return 0, ErrTooLarge
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	var fault *syntax.Error
	switch {
	case errors.As(err, &fault) && (fault.Code == syntax.ErrLarge || fault.Code == syntax.ErrNestingDepth || fault.Code == syntax.ErrInvalidRepeatSize):
		return 0, ErrTooLarge
	case fault != nil:
		return 0, fmt.Errorf("%w: %s", ErrInvalid, fault.Code)
	case err != nil:
		return 0, ErrInvalid
	}
	out := weight(parsed)
	if out > MostWeight {
		return 0, ErrTooLarge
	}
	return out, nil
}

// CompileAll compiles expressions that are used together, by the names of their fields: together they weigh no more than ten
// that are as large as may be. The error names a field.
func CompileAll(fields []string, texts []string) ([]*regexp.Regexp, error) {
	out, sum := make([]*regexp.Regexp, 0, len(texts)), 0
	for i, text := range texts {
		own, err := Weigh(text)
		if sum += own; err == nil && sum > 10*MostWeight {
			err = ErrTooLarge
		}
		if err != nil {
			return nil, fmt.Errorf("%s is %w", fields[i], err)
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s is %w", fields[i], ErrInvalid)
		}
		out = append(out, compiled)
	}
	return out, nil
}

func weight(e *syntax.Regexp) int {
	own := 1 + len(e.Rune)
	for _, sub := range e.Sub {
		own = min(own+weight(sub), MostWeight+1)
	}
	if e.Op == syntax.OpRepeat {
		own *= max(1, e.Min, e.Max)
	}
	return min(own, MostWeight+1)
}
