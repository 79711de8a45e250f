// Package remote tells what kustomize would fetch.
//
// In goes an entry of a kustomization; out comes whether it is the address of something that is not in the source. The package
// fetches nothing.
package remote

import (
	"net/url"
	"regexp"
	"strings"
)

// Forms of entries that make kustomize clone or download, and some that only other programs would follow.
var (
	host = regexp.MustCompile(`(?i)^(git::|gh:|github\.com[/:])`)
	user = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*@`)
)

// Is reports whether an entry is remote.
func Is(entry string) bool {
	entry = strings.TrimSpace(entry)
	if strings.Contains(entry, "://") || host.MatchString(entry) || user.MatchString(entry) {
		return true
	}
	u, err := url.Parse(entry)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Host != "")
}
