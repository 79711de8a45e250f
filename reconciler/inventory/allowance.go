package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// AllowPruneAnnotation on a Kustomization lifts the brake. Its words, separated by commas, are
// revisions for which it is lifted, "true" for all of them, and objects that may always be deleted,
// such as "namespace/shop" or "deployment.apps/shop/web". Precious objects have to be named.
const AllowPruneAnnotation = "kustomize.flotilla.io/allow-prune"

const (
	// shortestCommit is the shortest abbreviation of a commit that names a revision.
	shortestCommit = 7
	// mostInTrailer is how many names a person would put into a commit's message.
	mostInTrailer = 8
	// coreGroup stands for the group that has no name, as it does in controller-tools' markers.
	coreGroup = "core"
)

// shortName returns how people name an object in an allowance: "namespace/shop", "deployment/shop/web".
func shortName(id ID) string { return strings.ToLower(Describe(id)) }

// fullName returns the name with the group, for an object whose short name is that of an object of another group, too:
// "deployment.apps/shop/web", "service.core/shop/web".
func fullName(id ID) string {
	kind, rest, _ := strings.Cut(shortName(id), "/")
	group := id.GroupKind.Group
	if group == "" {
		group = coreGroup
	}
	return kind + "." + strings.ToLower(group) + "/" + rest
}

// Allowance is what people have allowed to be deleted. The zero value allows nothing.
type Allowance struct {
	revision bool
	names    map[string]bool
	// committed are the names of objects in the trailer, in their order, and misplaced those that the commit has elsewhere.
	committed []string
	misplaced map[string]bool
	// known holds an object for each short name, all every object, and alike the short names of several objects.
	known map[string]ID
	all   []ID
	alike map[string]bool
}

// AllowanceOf parses the annotation of a Kustomization, and the trailer of the commit of a revision
// such as "main@sha1:9f2c…"; both may be empty. A trailer can only name objects: it cannot lift the brake
// for all that a commit removes.
func AllowanceOf(annotation, trailer, revision string) Allowance {
	out := Allowance{names: map[string]bool{}, misplaced: map[string]bool{}}
	for word := range strings.SplitSeq(annotation, ",") {
		word = strings.TrimSpace(word)
		out.revision = out.revision || names(word, revision)
		out.names[inFull(word)] = true
	}
	for word := range strings.SplitSeq(trailer, ",") {
		word, elsewhere := strings.CutPrefix(strings.TrimSpace(word), gitopsv1alpha1.NotAllowed)
		word = inFull(word)
		if elsewhere {
			out.misplaced[word] = true
			continue
		}
		if out.names[word] = true; strings.Contains(word, "/") && !slices.Contains(out.committed, word) {
			out.committed = append(out.committed, word)
		}
	}
	return out
}

// short are kubectl's short names of kinds that are often deleted.
var short = map[string]string{
	"ns": "namespace", "pvc": "persistentvolumeclaim", "crd": "customresourcedefinition", "ks": "kustomization",
	"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "po": "pod",
	"svc": "service", "cm": "configmap", "ing": "ingress", "sa": "serviceaccount", "hpa": "horizontalpodautoscaler", "pdb": "poddisruptionbudget",
}

// tidy takes off a word what people put around and into it: blanks beside its slashes, and quotes.
var tidy = strings.NewReplacer(" / ", "/", " /", "/", "/ ", "/", "`", "", `"`, "", "'", "")

// inFull returns a word that people wrote in the form of shortName.
func inFull(word string) string {
	word = strings.TrimSpace(tidy.Replace(word))
	kind, name, _ := strings.Cut(strings.ToLower(word), "/")
	if full, is := short[kind]; is && name != "" {
		return full + "/" + name
	}
	return strings.ToLower(word)
}

// Among returns the allowance with names resolved among these objects. A name without a group that fits several of them
// allows none.
func (a Allowance) Among(known ...[]Entry) Allowance {
	a.known, a.alike, a.all = map[string]ID{}, map[string]bool{}, nil
	for _, entries := range known {
		for _, e := range entries {
			name := shortName(e.ID)
			if other, there := a.known[name]; there && other != e.ID {
				a.alike[name] = true
			}
			a.known[name], a.all = e.ID, append(a.all, e.ID)
		}
	}
	a.committed = meant(a, a.committed)
	return a
}

// meant returns words of a trailer with those that mean a known object in the form of NameOf.
func meant(a Allowance, words []string) []string {
	if len(words) == 0 {
		return words
	}
	names := map[string]string{}
	for _, id := range a.all {
		for _, word := range a.spellings(id) {
			names[word] = a.NameOf(id)
		}
	}
	var out []string
	for _, word := range words {
		if name := cmp.Or(names[word], word); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// spellings returns the words that name an object: as NameOf does and with its group, and as kubectl does, in the plural.
func (a Allowance) spellings(id ID) []string {
	var out []string
	for _, name := range []string{a.NameOf(id), fullName(id)} {
		out = append(out, name)
		kind, rest, _ := strings.Cut(name, "/")
		kind, group, grouped := strings.Cut(kind, ".")
		for _, many := range plurals(kind) {
			if grouped {
				many += "." + group
			}
			if word := many + "/" + rest; a.known[word] == (ID{}) { // else it is another object's name
				out = append(out, word)
			}
		}
	}
	return out
}

// plurals are what kinds are called where there are several of them.
func plurals(kind string) []string {
	return []string{kind + "s", kind + "es", strings.TrimSuffix(kind, "y") + "ies"}
}

// Unmeant returns the words of the trailer that name none of the known objects, and none of these.
func (a Allowance) Unmeant(others []Entry) []string {
	meant := map[string]bool{}
	for _, known := range []Allowance{a, Allowance{}.Among(others)} {
		for _, id := range known.all {
			for _, word := range known.spellings(id) {
				meant[word] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(a.committed), func(word string) bool { return meant[word] })
}

// Lets reports whether an object that is not precious may be deleted: by the revision, or by its name.
func (a Allowance) Lets(id ID) bool { return a.revision || a.Names(id) }

// Names reports whether the allowance names an object.
func (a Allowance) Names(id ID) bool { return has(a, a.names, id) }

// has reports whether an object is among words, in one of its spellings.
func has(a Allowance, words map[string]bool, id ID) bool {
	return len(words) > 0 && slices.ContainsFunc(a.spellings(id), func(word string) bool { return words[word] })
}

// NameOf returns the name by which to allow the deletion of an object: "namespace/shop", or, with its group, if other
// objects have that name: "ingress.networking.k8s.io/shop/web".
func (a Allowance) NameOf(id ID) string {
	name := shortName(id)
	if other, there := a.known[name]; a.alike[name] || there && other != id {
		return fullName(id)
	}
	return name
}

// Trailer returns the line of a commit message that allows the deletion of objects with these names, and of those that
// the present commit allows: "Flotilla-Allow-Delete: namespace/shop". It is empty for more names than a person would
// write, or if one contains a character that a list of names cannot hold.
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

// HowToAllow returns the end of a sentence, with the value of AllowPruneAnnotation that allows a deletion, and with the
// Trailer, unless that is empty.
func HowToAllow(annotation, trailer string) string {
	out := fmt.Sprintf("the annotation %s: %q", AllowPruneAnnotation, annotation)
	if trailer != "" {
		out += ", or in a commit by the trailer " + trailer
	}
	return out
}

// namesAll reports whether the allowance names a loss and each volume claim that is deleted along with it.
func (a Allowance) namesAll(l Loss) bool {
	return !slices.ContainsFunc(l.own(), func(id ID) bool { return !a.Names(id) })
}

// spaces returns the namespaces among the losses that are named. These allow all that is in them, but no volume claims.
func (a Allowance) spaces(losses []Loss) map[string]bool {
	out := map[string]bool{}
	for _, l := range losses {
		if l.ID.GroupKind == namespaceKind && a.Names(l.ID) {
			out[l.ID.Name] = true
		}
	}
	return out
}

// left returns a loss without the volume claims that are named.
func (a Allowance) left(l Loss) Loss {
	l.Contained = slices.DeleteFunc(slices.Clone(l.Contained), func(id ID) bool { return id.GroupKind == claimKind && a.Names(id) })
	return l
}

// wordsFor returns the names that allow a loss.
func (a Allowance) wordsFor(l Loss) []string {
	var out []string
	for _, id := range l.own() {
		out = append(out, a.NameOf(id))
	}
	return out
}

// with returns the value of the annotation that allows all of these losses. It names those that are precious or named
// already, and allows the others by the revision, if they are too many.
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

// trailer returns the Trailer that allows all of these losses, without the words that are unclear.
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

// unclear returns the words of the allowance that are probably mistyped, each with the names that it may mean: they
// resemble the name of a refused object and name none of the losses.
func (a Allowance) unclear(refused, losses []Loss) map[string][]string {
	clears := map[string]bool{}
	for _, l := range losses {
		for _, id := range l.own() {
			for _, word := range a.spellings(id) {
				clears[word] = true
			}
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

// describe returns the texts of a Refusal about unclear words, and about what is named where it does not count.
func (a Allowance) describe(unclear map[string][]string, refused []Loss) []string {
	var out []string
	for _, l := range refused {
		for _, id := range l.own() {
			if has(a, a.misplaced, id) && !a.Names(id) {
				out = append(out, a.NameOf(id)+" (in the message of the commit, but not in its last paragraph, where it counts)")
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(unclear)) {
		which := ""
		if a.alike[word] {
			which = ", which kinds of several groups have"
		}
		out = append(out, fmt.Sprintf("%s%s (did you mean %s?)", word, which, strings.Join(slices.Sorted(slices.Values(unclear[word])), " or ")))
	}
	return out
}

// isLike reports whether a word may mean an object: it has the same kind, in any group or in the plural, and nearly the same name, or the
// same one without its namespace. Blanks may separate several such, or stand for a slash.
func isLike(word string, id ID) bool {
	parts := strings.Fields(word)
	if len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(part, "/") }) {
		parts = []string{strings.Join(parts, "/")}
	}
	own, name, _ := strings.Cut(shortName(id), "/")
	_, bare, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(parts, func(part string) bool {
		kind, written, _ := strings.Cut(inFull(part), "/")
		kind, _, _ = strings.Cut(kind, ".")
		if kind != own && !slices.Contains(plurals(own), kind) || written == "" {
			return false
		}
		return written == name || written == bare || propagation.Nearest(written, []string{name}) != ""
	})
}

// names reports whether a word lifts the brake for a revision such as "main@sha1:9f2c…".
// It does so if it is "true", the revision itself, or its commit, which may be abbreviated
// to seven characters.
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
