package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// AllowPruneAnnotation on a Kustomization lifts the brake. Its words, between commas, are
// revisions for which it is lifted, "true" for all of them, and objects that may go whenever they
// do, such as "namespace/shop" or "deployment.apps/shop/web". What is precious goes by its name alone.
const AllowPruneAnnotation = "kustomize.flotilla.io/allow-prune"

const (
	// shortestCommit is the shortest abbreviation of a commit that names a revision.
	shortestCommit = 7
	// mostInTrailer is how many names a person would put into a commit's message.
	mostInTrailer = 8
	// coreGroup stands for the group that has no name, as it does in controller-tools' markers.
	coreGroup = "core"
)

// shortName is how people name an object that may go: "namespace/shop", "deployment/shop/web".
func shortName(id ID) string { return strings.ToLower(Describe(id)) }

// fullName is how they name it where others of another group have that name, too: "deployment.apps/shop/web",
// "service.core/shop/web".
func fullName(id ID) string {
	kind, rest, _ := strings.Cut(shortName(id), "/")
	group := id.GroupKind.Group
	if group == "" {
		group = coreGroup
	}
	return kind + "." + strings.ToLower(group) + "/" + rest
}

// Allowance is what people let go. The zero value is nothing.
type Allowance struct {
	revision bool
	names    map[string]bool
	// committed are the names of objects in the trailer, in their order.
	committed []string
	// known has an object of each short name, and alike the names of several.
	known map[string]ID
	alike map[string]bool
}

// AllowanceOf reads the annotation of a Kustomization, and the trailer of the commit of a revision
// such as "main@sha1:9f2c…": empty for none. A trailer only names objects: it cannot lift the brake
// for all that a commit removes.
func AllowanceOf(annotation, trailer, revision string) Allowance {
	out := Allowance{names: map[string]bool{}}
	for word := range strings.SplitSeq(annotation, ",") {
		word = strings.TrimSpace(word)
		out.revision = out.revision || names(word, revision)
		out.names[inFull(word)] = true
	}
	for word := range strings.SplitSeq(trailer, ",") {
		word = inFull(strings.TrimSpace(word))
		if out.names[word] = true; strings.Contains(word, "/") {
			out.committed = append(out.committed, word)
		}
	}
	return out
}

// short are kubectl's short names of kinds that go by their name alone.
var short = map[string]string{"ns": "namespace", "pvc": "persistentvolumeclaim", "crd": "customresourcedefinition", "ks": "kustomization"}

// inFull is a word of people as shortName has it.
func inFull(word string) string {
	kind, name, _ := strings.Cut(strings.ToLower(word), "/")
	if full, is := short[kind]; is && name != "" {
		return full + "/" + name
	}
	return strings.ToLower(word)
}

// Among returns the allowance of a revision that has to do with these objects. A name without a group that stands for
// several of them lets none go.
func (a Allowance) Among(known ...[]Entry) Allowance {
	a.known, a.alike = map[string]ID{}, map[string]bool{}
	for _, entries := range known {
		for _, e := range entries {
			name := shortName(e.ID)
			if other, there := a.known[name]; there && other != e.ID {
				a.alike[name] = true
			}
			a.known[name] = e.ID
		}
	}
	return a
}

// Lets reports whether an object may go, whatever else is not known of it.
func (a Allowance) Lets(id ID) bool { return a.revision || a.Names(id) }

// Names reports whether an object may go by its own name.
func (a Allowance) Names(id ID) bool { return a.names[a.NameOf(id)] || a.names[fullName(id)] }

// NameOf is the name by which an object may go: "namespace/shop", and with its group where others have that name, too:
// "ingress.networking.k8s.io/shop/web".
func (a Allowance) NameOf(id ID) string {
	name := shortName(id)
	if other, there := a.known[name]; a.alike[name] || there && other != id {
		return fullName(id)
	}
	return name
}

// Trailer is the line of a commit's message that lets objects of these names go, and what the commit before lets go:
// "Flotilla-Allow-Delete: namespace/shop". It is empty where they are more than somebody would write, or one does not
// fit into a line of names.
func (a Allowance) Trailer(names []string) string {
	all := slices.DeleteFunc(slices.Clone(a.committed), func(word string) bool { return a.alike[word] })
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	unfit := func(name string) bool { return strings.Contains(name, ",") || excerpt.Line(name) != name }
	if len(all) == 0 || len(all) > mostInTrailer || slices.ContainsFunc(all, unfit) {
		return ""
	}
	return gitopsv1alpha1.AllowDeleteTrailer + ": " + strings.Join(all, ", ")
}

// HowToAllow ends a sentence with the value of AllowPruneAnnotation that lets something go, and with a Trailer, unless
// that is empty.
func HowToAllow(annotation, trailer string) string {
	out := fmt.Sprintf("the annotation %s: %q", AllowPruneAnnotation, annotation)
	if trailer != "" {
		out += ", or in a commit by the trailer " + trailer
	}
	return out
}

// namesAll reports whether a loss may go, with each claim that it takes along.
func (a Allowance) namesAll(l Loss) bool {
	return !slices.ContainsFunc(l.own(), func(id ID) bool { return !a.Names(id) })
}

// spaces are the namespaces among the losses that may go: with all that is in them but claims.
func (a Allowance) spaces(losses []Loss) map[string]bool {
	out := map[string]bool{}
	for _, l := range losses {
		if l.ID.GroupKind == namespaceKind && a.Names(l.ID) {
			out[l.ID.Name] = true
		}
	}
	return out
}

// left is a loss without the claims that may go.
func (a Allowance) left(l Loss) Loss {
	l.Contained = slices.DeleteFunc(slices.Clone(l.Contained), func(id ID) bool { return id.GroupKind == claimKind && a.Names(id) })
	return l
}

// wordsFor are the names that let a loss go.
func (a Allowance) wordsFor(l Loss) []string {
	var out []string
	for _, id := range l.own() {
		out = append(out, a.NameOf(id))
	}
	return out
}

// with is what lets all of these go: what is precious, and what was named already, by its name,
// and the others, if they are too many, by the revision.
func (a Allowance) with(losses []Loss, tooMany bool, revision string) string {
	var words []string
	plain := false
	for _, l := range losses {
		if l.Precious || a.Names(l.ID) {
			words = append(words, a.wordsFor(l)...)
			continue
		}
		plain = true
	}
	if plain && (tooMany || a.revision) {
		words = append([]string{revision}, words...)
	}
	return strings.Join(words, ", ")
}

// trailer is the Trailer that lets all of these go, without the words that mean something else.
func (a Allowance) trailer(losses []Loss, tooMany bool, unclear map[string][]string) string {
	a.committed = slices.DeleteFunc(slices.Clone(a.committed), func(word string) bool { return unclear[word] != nil })
	var words []string
	for _, l := range losses {
		if l.Precious || tooMany || a.Names(l.ID) {
			words = append(words, a.wordsFor(l)...)
		}
	}
	return a.Trailer(words)
}

// unclear are the words that are like the name of something that they do not let go, and let nothing else of the
// losses go, each with the names that it may mean.
func (a Allowance) unclear(refused, losses []Loss) map[string][]string {
	clears := map[string]bool{}
	for _, l := range losses {
		for _, id := range l.own() {
			clears[a.NameOf(id)], clears[fullName(id)] = true, true
		}
	}
	means := map[string][]string{}
	for _, l := range refused {
		for _, id := range l.own() {
			for word := range a.names {
				if !clears[word] && isLike(word, id) {
					means[word] = append(means[word], a.NameOf(id))
				}
			}
		}
	}
	return means
}

// describe returns what a Refusal says of words that are unclear.
func (a Allowance) describe(unclear map[string][]string) []string {
	var out []string
	for _, word := range slices.Sorted(maps.Keys(unclear)) {
		which := ""
		if a.alike[word] {
			which = ", which kinds of several groups have"
		}
		out = append(out, fmt.Sprintf("%s%s (did you mean %s?)", word, which, strings.Join(slices.Sorted(slices.Values(unclear[word])), " or ")))
	}
	return out
}

// isLike reports whether a word may mean an object: of its kind, whatever the group, with nearly its name.
func isLike(word string, id ID) bool {
	kind, written, _ := strings.Cut(word, "/")
	kind, _, _ = strings.Cut(kind, ".")
	own, name, _ := strings.Cut(shortName(id), "/")
	return kind == own && propagation.Nearest(written, []string{name}) != ""
}

// names reports whether a word lifts the brake for a
// revision such as "main@sha1:9f2c…": "true", the revision itself, or its
// commit, in full or from seven characters on.
func names(word, revision string) bool {
	switch word {
	case "":
		return false
	case "true", revision:
		return true
	}
	commit := revision[strings.LastIndexAny(revision, ":@")+1:]
	return len(word) >= shortestCommit && strings.HasPrefix(commit, word)
}
