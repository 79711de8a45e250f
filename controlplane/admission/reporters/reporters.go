package reporters

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	owners "github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

const (
	// ControlPlane is the component name in the Events of loops.
	ControlPlane = "flotilla"
	// Agent is the component name in the Events of clusters' agents.
	Agent = "flotilla-agent"
)

// Reporters refuses Events under a name that does not belong to the writer. Otherwise any
// user who may write Events in a namespace could publish false reports in the control
// plane's name.
type Reporters struct{ *admission.Handler }

var _ admission.ValidationInterface = Reporters{}

// New returns the plugin.
func New() Reporters {
	return Reporters{admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface. It also refuses changes by others to
// an Event that the control plane reported.
func (Reporters) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetKind().Kind != "Event" || a.GetResource().Resource != "events" || owners.MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	for _, obj := range []runtime.Object{a.GetObject(), a.GetOldObject()} {
		if obj == nil {
			continue
		}
		var event corev1.Event
		if err := o.GetObjectConvertor().Convert(obj, &event, nil); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read what is written: %w", err))
		}
		for field, name := range map[string]string{"source.component": event.Source.Component, "reportingComponent": event.ReportingController} {
			if !mayReportAs(a.GetUserInfo(), name) {
				return admission.NewForbidden(a, fmt.Errorf("%s: %q is, or looks like, a name by which the control plane reports: take another name, of ASCII alone", field, name))
			}
		}
	}
	return nil
}

// mayReportAs reports whether a user outside the control plane may report under a name. He
// may not if people could take it for the name of the control plane or of a part of it.
func mayReportAs(who user.Info, name string) bool {
	if name == Agent {
		_, agent := identity.ClusterOfAgent(who.GetName())
		return agent
	}
	return !strings.ContainsFunc(name, foreign) && !strings.HasPrefix(skeleton(name), skeleton(ControlPlane))
}

// foreign reports whether a rune is outside ASCII. Some of those look like ASCII letters,
// and many are invisible. Kubernetes' newer Events API allows none in these names either.
func foreign(r rune) bool { return r > unicode.MaxASCII }

// alike maps characters that look alike to one of them.
var alike = strings.NewReplacer("i", "l", "1", "l", "|", "l", "0", "o")

// skeleton reduces an ASCII name to what people recognize in any font: in lower case,
// without spaces and control characters, and with similar characters unified.
func skeleton(name string) string {
	seen := strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	return alike.Replace(strings.ToLower(seen))
}
