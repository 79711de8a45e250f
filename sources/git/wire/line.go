package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxLine is the longest line of the protocol, with the four digits of its length.
const maxLine = 65520

// mark is what a line is that has no text.
type mark int

const (
	text  mark = iota // it has a text
	flush             // ends a message
	delim             // ends a section of a message
)

// peek returns the next line without taking it, and how many bytes it takes up. The text is valid until the next read.
func peek(in *bufio.Reader) (mark, []byte, int, error) {
	head, err := in.Peek(4)
	if len(head) < 4 {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return text, nil, 0, err
	}
	size, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil, size == 2, size == 3, size > maxLine:
		return text, nil, 0, fmt.Errorf("%w: no line of the protocol", ErrMalformed)
	case size == 0:
		return flush, nil, 4, nil
	case size == 1:
		return delim, nil, 4, nil
	}
	line, err := in.Peek(int(size))
	if len(line) < int(size) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return text, nil, 0, err
	}
	return text, line[4:], int(size), nil
}

// next takes the next line; the text is valid until the next read. Errors: a Refusal for a line that says one; io.EOF at the end.
func next(in *bufio.Reader) (mark, []byte, error) {
	kind, line, size, err := peek(in)
	if err != nil {
		return kind, nil, err
	}
	if words, refuses := bytes.CutPrefix(line, []byte("ERR ")); refuses {
		return kind, nil, &Refusal{Words: string(words)}
	}
	_, err = in.Discard(size)
	return kind, line, err
}

// chomp returns a line without its line break.
func chomp(line []byte) string { return string(bytes.TrimSuffix(line, []byte("\n"))) }

// lines writes lines of the protocol; the first error stays.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) text(s string) {
	if len(s)+5 > maxLine {
		l.err = errors.Join(l.err, fmt.Errorf("a line of %d bytes is more than Git's protocol has", len(s)))
	}
	l.raw(fmt.Sprintf("%04x%s\n", len(s)+5, s))
}

func (l *lines) mark(m mark) { l.raw(map[mark]string{flush: "0000", delim: "0001"}[m]) }

func (l *lines) raw(s string) {
	if l.err == nil {
		_, l.err = io.WriteString(l.w, s)
	}
}
