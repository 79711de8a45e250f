package unfit

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// Reason is why clusters were refused.
type Reason struct {
	// Plugin that refused them.
	Plugin string
	// Text as the plugin gave it: "cluster(s) had no quay".
	Text string
	// Clusters is how many were refused for it.
	Clusters int
}

// Error says that no cluster fits. It is not tried again until a cluster,
// the policy or the template changes.
type Error struct {
	// Clusters is how many there are.
	Clusters int
	// Reasons, the most frequent first, then by text.
	Reasons []Reason
}

// maxReasons is how many reasons a message names; the rest is counted.
const maxReasons = 5

// New counts refusals, one for each cluster, and sorts them.
func New(refusals []Reason) *Error {
	e := &Error{Clusters: len(refusals)}
	slices.SortFunc(refusals, func(a, b Reason) int { return cmp.Compare(a.Text, b.Text) })
	for i, r := range refusals {
		if i == 0 || r.Text != refusals[i-1].Text {
			e.Reasons = append(e.Reasons, Reason{Plugin: r.Plugin, Text: r.Text})
		}
		e.Reasons[len(e.Reasons)-1].Clusters++
	}
	slices.SortStableFunc(e.Reasons, func(a, b Reason) int { return cmp.Compare(b.Clusters, a.Clusters) })
	return e
}

// Error counts the clusters by reason: "0/3 clusters are available: 2
// cluster(s) did not have the API resource, 1 …". It names the most frequent
// reasons only, so that it stays short however many clusters there are.
func (e *Error) Error() string {
	if e.Clusters == 0 {
		return "0/0 clusters are available: no cluster has joined."
	}
	named := e.Reasons[:min(len(e.Reasons), maxReasons)]
	texts := make([]string, len(named), len(named)+1)
	for i, r := range named {
		texts[i] = fmt.Sprintf("%d %s", r.Clusters, r.Text)
	}
	if more := len(e.Reasons) - len(named); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more reasons", more))
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, strings.Join(texts, ", "))
}

// Cause distinguishes errors that give other reasons, however many clusters they
// are about. Where there are more reasons than a message names, it is other
// plugins that make the difference, and those reasons that the message names.
func (e *Error) Cause() string {
	if len(e.Reasons) <= maxReasons {
		return e.causeBy(func(r Reason) string { return r.Text })
	}
	named := make([]string, maxReasons)
	for i := range named {
		named[i] = CauseOf([]string{e.Reasons[i].Text})
	}
	return e.byPlugins() + namedAfter + strings.Join(named, namedBetween)
}

// Separators of what Cause consists of where there are many reasons.
const namedAfter, namedBetween = "/", "."

func (e *Error) byPlugins() string {
	return e.causeBy(func(r Reason) string { return r.Plugin })
}

func (e *Error) causeBy(text func(Reason) string) string {
	texts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		texts[i] = text(r)
	}
	slices.Sort(texts)
	return CauseOf(slices.Compact(texts))
}

// BearsOut reports whether a message of an earlier error, with this cause, is still
// true: some of many reasons come and go, but none that it names has gone.
func (e *Error) BearsOut(cause string) bool {
	plugins, named, many := strings.Cut(cause, namedAfter)
	if !many || len(e.Reasons) <= maxReasons || plugins != e.byPlugins() {
		return false
	}
	given := map[string]bool{}
	for _, r := range e.Reasons {
		given[CauseOf([]string{r.Text})] = true
	}
	return !slices.ContainsFunc(strings.Split(named, namedBetween), func(text string) bool { return !given[text] })
}

// CauseOf returns a short text that is another one for other texts.
func CauseOf(texts []string) string {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text + "\n")) // a hash never fails
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
