package tenancy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonLimitExceeded is that of conditions of what a namespace may not have, as it has so much.
const ReasonLimitExceeded = "LimitExceeded"

// Limit is something of which a namespace may have so much.
type Limit string

// The limits, by the names that people give them.
const (
	// Sources are GitRepositories, OCIRepositories, Buckets and ExternalArtifacts.
	Sources Limit = "sources"
	// ArtifactSize is that of what they fetched and the store keeps, in bytes, packed.
	ArtifactSize Limit = "artifact-size"
	// Kustomizations are what they are called.
	Kustomizations Limit = "kustomizations"
	// Objects are what Kustomizations of the namespace own on the control plane, wherever that is.
	Objects Limit = "objects"
	// ObjectSize is theirs, in bytes of JSON.
	ObjectSize Limit = "object-size"
)

// words are how texts name what is limited.
var words = map[Limit]string{
	Sources: "sources", ArtifactSize: "bytes of artifacts", Kustomizations: "Kustomizations", Objects: "objects of Kustomizations", ObjectSize: "bytes of objects of Kustomizations",
}

// Limits are what a namespace may have that is not privileged. What is missing, or zero, is not limited.
type Limits map[Limit]int64

// DefaultLimits are far above what a team has, and far below what a control plane holds.
func DefaultLimits() Limits {
	return Limits{Sources: 100, ArtifactSize: 1 << 30, Kustomizations: 1000, Objects: 10_000, ObjectSize: 64 << 20}
}

// ParseLimits reads quantities by the names of the limits; what it does not name has its default.
func ParseLimits(texts map[string]string) (Limits, error) {
	out := DefaultLimits()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, known := words[Limit(name)]; !known {
			return nil, fmt.Errorf("%q is no limit: there are %s", name, strings.Join(limitNames(), ", "))
		}
		quantity, err := resource.ParseQuantity(texts[name])
		n, whole := quantity.AsInt64()
		if err != nil || !whole || n < 0 {
			return nil, fmt.Errorf("%s=%s: it is no quantity such as 100 or 1Gi, or 0 for as much as there is", name, texts[name])
		}
		out[Limit(name)] = n
	}
	return out, nil
}

func limitNames() []string {
	var out []string
	for limit := range words {
		out = append(out, string(limit))
	}
	slices.Sort(out)
	return out
}

// String is as the flag has it: "artifact-size=1Gi,kustomizations=1000".
func (l Limits) String() string {
	var texts []string
	for _, name := range limitNames() {
		if most, set := l[Limit(name)]; set {
			texts = append(texts, name+"="+Limit(name).quantity(most))
		}
	}
	return strings.Join(texts, ",")
}

// quantity is a number as people write it.
func (l Limit) quantity(n int64) string {
	if l == ArtifactSize || l == ObjectSize {
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return strconv.FormatInt(n, 10)
}

// Check errs if a namespace would have more than it may of something.
func (l Limits) Check(namespace string, of Limit, have int64) error {
	if most := l[of]; most > 0 && have > most {
		return l.exceeded(namespace, of, have)
	}
	return nil
}

// Replace errs if a namespace would have more than it may of something, as it gets next in the place of last and
// keeps the rest. To have less than before is always allowed.
func (l Limits) Replace(namespace string, of Limit, rest, last, next int64) error {
	if next <= last {
		return nil
	}
	return l.Check(namespace, of, rest+next)
}

func (l Limits) exceeded(namespace string, of Limit, have int64) error {
	return fmt.Errorf("the namespace %s would have %d %s, and may have %d (serve --namespace-limits %s=%s): remove what is not needed, or ask an administrator for more",
		namespace, have, words[of], l[of], of, of.quantity(l[of]))
}

// CapacityPoll is how often it is looked whether there is room for what was refused: others make it, of whom nobody
// reports.
const CapacityPoll = time.Minute

// Older reports whether an object was there before another one: where there are too many, the older ones stay.
func Older(a, b metav1.Object) bool {
	since, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(since.Compare(other.Time), cmp.Compare(a.GetName(), b.GetName())) < 0
}

// In returns the limits of a namespace: none of one whose Kustomizations the control plane itself acts for.
func (r Rules) In(namespace string) Limits {
	if slices.Contains(r.PrivilegedNamespaces, namespace) {
		return nil
	}
	return r.Limits
}
