package alerting

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Severities of Events, and of Alerts.
const (
	Info  = "info"
	Error = "error"
)

// Event is what has happened to an object. As JSON it is Flux's Event.
type Event struct {
	InvolvedObject      corev1.ObjectReference `json:"involvedObject"`
	Severity            string                 `json:"severity"`
	Timestamp           metav1.Time            `json:"timestamp"`
	Message             string                 `json:"message"`
	Reason              string                 `json:"reason"`
	Metadata            map[string]string      `json:"metadata,omitempty"`
	ReportingController string                 `json:"reportingController"`

	// Labels are those of the object.
	Labels map[string]string `json:"-"`
	// Annotated is the metadata that the object's annotations ask for. It yields to all other.
	Annotated map[string]string `json:"-"`
}

// annotationPrefix begins the annotations of an object that are metadata of its Events.
const annotationPrefix = "event.toolkit.fluxcd.io/"

// Bounds of what a tenant adds to an Event, in entries and bytes.
const (
	mostEntries  = 16
	mostKey      = 64
	mostValue    = 512
	mostMetadata = 4 << 10
)

// Annotated returns the metadata that the annotations of an object ask for.
func Annotated(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if name, ours := strings.CutPrefix(key, annotationPrefix); ours && name != "" {
			out[name] = value
		}
	}
	return bounded(out)
}

// bounded returns the first entries, in the order of their keys, as far as there is room for them, with values that are cut.
func bounded(metadata map[string]string) map[string]string {
	out, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := excerpt.Message(metadata[key], mostValue)
		if size += len(key) + len(value); len(key) > mostKey || size > mostMetadata || len(out) == mostEntries {
			continue
		}
		out[key] = value
	}
	return out
}

// Failed reports whether the Event says that something is wrong.
func (e Event) Failed() bool { return e.Severity == Error }

// Name is the object in one word, as in kustomization/web.shop.
func (e Event) Name() string {
	o := e.InvolvedObject
	return strings.ToLower(o.Kind) + "/" + o.Name + "." + o.Namespace
}

// Fact is an entry of an Event's metadata.
type Fact struct{ Key, Value string }

// Facts returns the metadata, sorted: what is said by hand comes last.
func (e Event) Facts() []Fact {
	var out []Fact
	for key, value := range e.Metadata {
		out = append(out, Fact{key, value})
	}
	slices.SortFunc(out, func(a, b Fact) int {
		return cmp.Or(cmp.Compare(rank(a.Key), rank(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// rank puts first what is the Event's own.
func rank(key string) int {
	if at := slices.Index([]string{KeyRevision, KeyOriginRevision, keySummary}, key); at >= 0 {
		return at
	}
	return len(KeyRevision)
}

// Keys of metadata.
const (
	// KeyRevision has the revision that an Event is about, and KeyOriginRevision where that was made from.
	KeyRevision       = "revision"
	KeyOriginRevision = "originRevision"
	keySummary        = "summary"
)
