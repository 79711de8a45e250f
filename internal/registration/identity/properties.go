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
	// PropertiesAnnotation is, on the Secret of a token and on the role of an
	// agent, what an administrator declares about the cluster that registers by
	// it: Properties, as JSON.
	PropertiesAnnotation = "registration.flotilla.io/cluster-properties"
	// RequestedAnnotation is, on a Cluster, what its agent reports about it and no
	// administrator has declared: Properties, as JSON. It has no effect.
	RequestedAnnotation = "registration.flotilla.io/requested-properties"
)

// Properties are what policies select clusters by, so that whoever sets them
// decides what the cluster gets to run. Zero fields declare nothing.
type Properties struct {
	Provider string   `json:"provider,omitempty"`
	Region   string   `json:"region,omitempty"`
	Zones    []string `json:"zones,omitempty"`
	// Labels and Taints can be set by an administrator only: agents request none.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// ApplyAs is as whom Works are applied in the cluster, like the annotation of
	// a Cluster. It can be set by an administrator only, too.
	ApplyAs string `json:"applyAs,omitempty"`
}

// PlaceOf returns the provider, region and zones of a cluster.
func PlaceOf(c *clusterv1alpha1.Cluster) Properties {
	out := Properties{Provider: c.Spec.Provider, Region: c.Spec.Region, Zones: slices.Clone(c.Spec.Zones)}
	if len(out.Zones) == 0 && c.Spec.Zone != "" {
		out.Zones = []string{c.Spec.Zone}
	}
	return out
}

// Locate sets the provider, region and zones of a cluster, and nothing else.
func (p *Properties) Locate(c *clusterv1alpha1.Cluster) {
	c.Spec.Provider, c.Spec.Region, c.Spec.Zones, c.Spec.Zone = p.Provider, p.Region, slices.Clone(p.Zones), ""
}

// Give sets on a cluster what is declared here; everything else stays.
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

// Beyond returns the fields of the place in more that differ from p. With whole,
// it returns p's place overridden by that of more.
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

// String returns the value for annotations; empty for the zero value.
func (p *Properties) String() string {
	if p.IsZero() {
		return ""
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "" // cannot happen: all its fields can be encoded
	}
	return string(data)
}

// Words returns a text with the declared place.
func (p *Properties) Words() string {
	var out []string
	for _, w := range []struct{ name, value string }{{"provider", p.Provider}, {"region", p.Region}, {"zones", strings.Join(p.Zones, ",")}} {
		if w.value != "" {
			out = append(out, fmt.Sprintf("%s %q", w.name, w.value))
		}
	}
	return strings.Join(out, ", ")
}

// Patch returns the merge patch by which an administrator declares the same
// place. It is JSON of printable ASCII without apostrophes: users paste it into a
// shell between two apostrophes, and its content comes from an agent.
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

// ErrProperties means that the value of an annotation cannot be decoded.
var ErrProperties = errors.New("the properties of the cluster cannot be read")

// ParseProperties decodes the value of an annotation; empty is the zero value.
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
