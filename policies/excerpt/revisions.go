package excerpt

import (
	"regexp"
	"strings"
)

// digest is what is quoted, or the commit, or digest, of a revision such as "main@sha1:9f2c…": the first digits distinguish
// it from others.
var digest = regexp.MustCompile(`("[^"]*")|\b(sha1:[0-9a-f]{8}|sha256:[0-9a-f]{8})[0-9a-f]{32,56}\b`)

// Revisions returns a text with short commits in place of those that it names in full: what it quotes takes no more room
// than what is to be done. What stands in quotes is a value that people copy, and stays whole.
func Revisions(text string) string { return digest.ReplaceAllString(text, "$1$2") }

// shortCommit is how much of a commit people read.
const shortCommit = 8

// ShortRevision returns a revision with a short commit, as Flux shows it; "-" for none.
func ShortRevision(revision string) string {
	if revision == "" {
		return "-"
	}
	i := strings.LastIndexByte(revision, ':')
	if i < 0 || len(revision)-i-1 <= shortCommit {
		return revision
	}
	return revision[:i+1+shortCommit]
}
