// Package syntax checks how single values of fields are written: names, labels,
// ports, selectors.
//
// In go a value and the path of its field; out come errors about that field. It
// knows no kinds.
package syntax

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Advise returns a warning: the field, what is unwise about it and what to do.
func Advise(at *field.Path, format string, args ...any) string {
	return at.String() + ": " + fmt.Sprintf(format, args...)
}

func invalid(at *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range messages {
		errs = append(errs, field.Invalid(at, value, msg))
	}
	return errs
}

// LabelName checks the key of a label.
func LabelName(name string, at *field.Path) field.ErrorList {
	return invalid(at, name, validation.IsQualifiedName(name))
}

// LabelValue checks the value of a label.
func LabelValue(v string, at *field.Path) field.ErrorList {
	return invalid(at, v, validation.IsValidLabelValue(v))
}

// LabelSelector checks a selector, which may be nil.
func LabelSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

// ClusterName checks the name of a cluster.
func ClusterName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		errs = append(errs, field.TooLong(at, name, clusterv1alpha1.ClusterNameMaxLength))
	}
	return append(errs, invalid(at, name, validation.IsDNS1123Label(name))...)
}

// Segment checks a name that is needed and may stand in a URL.
func Segment(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return invalid(at, name, path.IsValidPathSegmentName(name))
}

// APIVersion checks a version, with or without a group.
func APIVersion(v string, at *field.Path) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	group, version, grouped := strings.Cut(v, "/")
	if grouped && (group == "" || version == "" || strings.Contains(version, "/")) {
		return field.ErrorList{field.Invalid(at, v, "must be version or group/version")}
	}
	return nil
}

// Port checks the number of a port.
func Port(port int32, at *field.Path) field.ErrorList {
	return invalid(at, port, validation.IsValidPortNum(int(port)))
}

// PortName checks the name of a port.
func PortName(name string, at *field.Path) field.ErrorList {
	return invalid(at, name, validation.IsValidPortName(name))
}

// Subdomain checks a DNS name.
func Subdomain(name string, at *field.Path) field.ErrorList {
	return invalid(at, name, validation.IsDNS1123Subdomain(name))
}

// Host checks a DNS name, or one with a wildcard before it.
func Host(name string, at *field.Path) field.ErrorList {
	if strings.Contains(name, "*") {
		return invalid(at, name, validation.IsWildcardDNS1123Subdomain(name))
	}
	return Subdomain(name, at)
}

// Label checks a DNS label that starts with a letter, as a Service's name.
func Label(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return invalid(at, name, validation.IsDNS1035Label(name))
}
