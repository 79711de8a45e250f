package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	// PropertiesAnnotation is, on the Secret of a token and on the role of an agent,
	// what an administrator says of the cluster that registers by it: Properties, as
	// JSON.
	PropertiesAnnotation = "registration.flotilla.io/cluster-properties"
	// RequestedAnnotation is, on a Cluster, what its agent says of it and no
	// administrator has declared: Properties, as JSON. It counts for nothing.
	RequestedAnnotation = "registration.flotilla.io/requested-properties"
)

// Properties are what policies select and reject a cluster by. Whoever says them
// says what the cluster is given to run. Zero values say nothing.
type Properties struct {
	Provider string   `json:"provider,omitempty"`
	Region   string   `json:"region,omitempty"`
	Zones    []string `json:"zones,omitempty"`
	// Labels and Taints are an administrator's alone: agents ask for none.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// ApplyAs says as whom Works are applied in the cluster, as the annotation of a
	// Cluster does; an administrator's alone, too.
	ApplyAs string `json:"applyAs,omitempty"`
}

// PlaceOf returns where a cluster is, as it says.
func PlaceOf(c *clusterv1alpha1.Cluster) Properties {
	out := Properties{Provider: c.Spec.Provider, Region: c.Spec.Region, Zones: slices.Clone(c.Spec.Zones)}
	if len(out.Zones) == 0 && c.Spec.Zone != "" {
		out.Zones = []string{c.Spec.Zone}
	}
	return out
}

// Locate sets where a cluster is, and nothing else of it.
func (p *Properties) Locate(c *clusterv1alpha1.Cluster) {
	c.Spec.Provider, c.Spec.Region, c.Spec.Zones, c.Spec.Zone = p.Provider, p.Region, slices.Clone(p.Zones), ""
}

// Give sets on a cluster what is declared here; all else stays.
func (p *Properties) Give(c *clusterv1alpha1.Cluster) {
	place := PlaceOf(c)
	over := place.Beyond(*p, true)
	over.Locate(c)
	for key, value := range p.Labels {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[key] = value
	}
	if p.ApplyAs != "" {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1alpha1.ApplyAsAnnotation, p.ApplyAs)
	}
	for _, taint := range p.Taints {
		same := func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }
		if i := slices.IndexFunc(c.Spec.Taints, same); i >= 0 {
			c.Spec.Taints[i].Value = taint.Value
			continue
		}
		c.Spec.Taints = append(c.Spec.Taints, taint)
	}
}

// Beyond returns what more says of the place and p does not: with whole also what p
// says where more says nothing.
func (p *Properties) Beyond(more Properties, whole bool) Properties {
	pick := func(is, asked string) string {
		if asked == "" && whole || asked == is && whole {
			return is
		}
		if asked == is {
			return ""
		}
		return asked
	}
	out := Properties{Provider: pick(p.Provider, more.Provider), Region: pick(p.Region, more.Region)}
	switch {
	case len(more.Zones) > 0 && (whole || !slices.Equal(p.Zones, more.Zones)):
		out.Zones = slices.Clone(more.Zones)
	case whole:
		out.Zones = slices.Clone(p.Zones)
	}
	return out
}

// IsZero reports whether nothing is declared.
func (p *Properties) IsZero() bool {
	return p.Provider == "" && p.Region == "" && len(p.Zones) == 0 && len(p.Labels) == 0 && len(p.Taints) == 0 && p.ApplyAs == ""
}

// String returns the text that annotations carry; empty for the zero value.
func (p *Properties) String() string {
	if p.IsZero() {
		return ""
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "" // there is nothing in it that JSON cannot say
	}
	return string(data)
}

// Words names the declared place, for people.
func (p *Properties) Words() string {
	var out []string
	for _, w := range []struct{ name, value string }{{"provider", p.Provider}, {"region", p.Region}, {"zones", strings.Join(p.Zones, ",")}} {
		if w.value != "" {
			out = append(out, fmt.Sprintf("%s %q", w.name, w.value))
		}
	}
	return strings.Join(out, ", ")
}

// Patch returns the merge patch by which an administrator says the same of the
// place: JSON of printable ASCII without apostrophes, since it is shown between two
// of them to be pasted into a shell, and what it says is an agent's.
func (p *Properties) Patch() string {
	data, err := json.Marshal(map[string]any{"spec": Properties{Provider: p.Provider, Region: p.Region, Zones: p.Zones}})
	if err != nil {
		return ""
	}
	var out strings.Builder
	for _, r := range string(data) {
		if r >= ' ' && r <= '~' && r != '\'' {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// ErrProperties says that a text is not what annotations carry.
var ErrProperties = errors.New("the properties of the cluster cannot be read")

// ParseProperties reads the text of an annotation; empty is the zero value.
func ParseProperties(text string) (Properties, error) {
	var out Properties
	if text == "" {
		return out, nil
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return Properties{}, fmt.Errorf("%w: %w", ErrProperties, err)
	}
	return out, nil
}
