package lfs

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// Pointer is what a commit has of a file.
type Pointer struct {
	// OID is the SHA-256 of the content, in lower-case hex.
	OID string
	// Size is that of the content, in bytes.
	Size int64
}

// longestPointer is how long a pointer may be, in bytes.
const longestPointer = 1024

// first is how a pointer begins.
const first = "version https://git-lfs.github.com/spec/v1\n"

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Parse returns the pointer that a file is; false if it is none.
func Parse(content []byte) (Pointer, bool) {
	if len(content) > longestPointer || !bytes.HasPrefix(content, []byte(first)) {
		return Pointer{}, false
	}
	var out Pointer
	sized := false
	for text := range strings.SplitSeq(string(content[len(first):]), "\n") {
		key, value, _ := strings.Cut(text, " ")
		switch key {
		case "oid":
			out.OID, _ = strings.CutPrefix(value, "sha256:")
		case "size":
			size, err := strconv.ParseInt(value, 10, 64)
			out.Size, sized = size, err == nil && size >= 0
		}
	}
	return out, sized && hash.MatchString(out.OID)
}
