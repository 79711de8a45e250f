package lint

import (
	"context"
	"fmt"
	"strings"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/sources/receiver"
)

// receivers reports Receivers without the Secret that they need, expressions that are none, and what they name that nobody looks at.
func receivers(ctx context.Context, l *linter) {
	for _, o := range l.objects {
		of := &notificationv1.Receiver{}
		if o.gvk != notificationv1.GroupVersion.WithKind(notificationv1.ReceiverKind) || o.patch || runtime.DefaultUnstructuredConverter.FromUnstructured(o.doc.Fields, of) != nil {
			continue // the check of the schema reports that
		}
		if err := receiver.Check(ctx, of); err != nil {
			field, _, _ := strings.Cut(err.Error(), " ")
			field = strings.TrimSuffix(field, ":")
			refuse(l, o, field, strings.Replace(err.Error(), field+": ", field+" ", 1))
		}
		for i, ref := range of.Spec.Resources {
			if !receiver.Serves(ref.Kind) {
				l.add(o, Warning, fmt.Sprintf("spec.resources[%d].kind", i), "nobody looks at "+ref.Kind+"/"+ref.Name+": such kinds are not served yet")
			}
		}
	}
}
