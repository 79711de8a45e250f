package alerting

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/pattern"
)

// Scope says what an Alert may name.
type Scope struct {
	// CrossNamespace allows sources of another namespace than the Alert's.
	CrossNamespace bool
}

// Rule is which Events an Alert asks for. The zero value asks for none.
type Rule struct {
	sources          []notificationv1.CrossNamespaceObjectReference // with their namespaces
	errors           bool                                           // these alone
	include, exclude []*regexp.Regexp
	restricted       bool // what nothing in include matches does not pass
	metadata         map[string]string
	summary          string
}

// served are the kinds whose Events there are.
func served() []string {
	return []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind, sourcev1.ExternalArtifactKind, kustomizev1.KustomizationKind}
}

// Compile returns the rule of an Alert. What has no effect in it is left out: Faults reports it.
func Compile(alert *notificationv1beta3.Alert, scope Scope) Rule {
	if alert.Spec.Suspend || alert.DeletionTimestamp != nil {
		return Rule{}
	}
	out := Rule{
		errors: alert.Spec.EventSeverity == Error, restricted: len(alert.Spec.InclusionList) > 0,
		metadata: bounded(alert.Spec.EventMetadata), summary: excerpt.Message(alert.Spec.Summary, mostValue),
	}
	for _, ref := range alert.Spec.EventSources {
		if ref.Namespace == "" {
			ref.Namespace = alert.Namespace
		}
		if slices.Contains(served(), ref.Kind) && (scope.CrossNamespace || ref.Namespace == alert.Namespace) {
			out.sources = append(out.sources, ref)
		}
	}
	out.include, _ = expressions(alert.Spec.InclusionList)
	out.exclude, _ = expressions(alert.Spec.ExclusionList)
	return out
}

// Namespaces returns the namespaces whose Events the rule may ask for.
func (r Rule) Namespaces() []string {
	found := map[string]bool{}
	for _, ref := range r.sources {
		found[ref.Namespace] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Selects reports whether the rule is about an Event's object and severity.
func (r Rule) Selects(e Event) bool {
	if r.errors && !e.Failed() {
		return false
	}
	return slices.ContainsFunc(r.sources, func(ref notificationv1.CrossNamespaceObjectReference) bool {
		switch {
		case ref.Kind != e.InvolvedObject.Kind, ref.Namespace != e.InvolvedObject.Namespace:
			return false
		case ref.Name != "*":
			return ref.Name == e.InvolvedObject.Name
		}
		for key, value := range ref.MatchLabels {
			if has, found := e.Labels[key]; !found || has != value {
				return false
			}
		}
		return true
	})
}

// Passes reports whether the Event's message is one that the Alert asks for. It takes longer than Selects.
func (r Rule) Passes(e Event) bool {
	matches := func(expr *regexp.Regexp) bool { return expr.MatchString(e.Message) }
	return (!r.restricted || slices.ContainsFunc(r.include, matches)) && !slices.ContainsFunc(r.exclude, matches)
}

// Of returns the Event with the metadata that the Alert adds: what the Event says by itself stays, the summary comes next,
// then eventMetadata, and last what the object's annotations say.
func (r Rule) Of(e Event) Event {
	metadata := map[string]string{}
	maps.Copy(metadata, e.Annotated)
	maps.Copy(metadata, r.metadata)
	if r.summary != "" {
		metadata[keySummary] = r.summary
	}
	maps.Copy(metadata, e.Metadata)
	e.Metadata = metadata
	return e
}

// mostExpressions is how many expressions of a list count.
const mostExpressions = 32

// expressions compiles a list. What cannot be compiled, or would take too long, is left out, and reported by its position.
func expressions(list []string) ([]*regexp.Regexp, map[int]string) {
	var out []*regexp.Regexp
	faults := map[int]string{}
	for i, text := range list {
		if i >= mostExpressions {
			faults[i] = fmt.Sprintf("is left out: a list has room for %d", mostExpressions)
			break
		}
		compiled, err := pattern.Compile(text)
		if err != nil {
			faults[i] = fmt.Sprintf("%s counts for nothing, as it is %s", quoted(text), err)
			continue
		}
		out = append(out, compiled)
	}
	return out, faults
}

// quoted is an expression in a message.
func quoted(text string) string { return fmt.Sprintf("%q", excerpt.Runes(text, 60)) }
