package remark

import (
	"fmt"
	"strings"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfReceiver returns what to say of a Receiver that is not ready, by its condition Ready, which is nil where it has none.
func OfReceiver(r *notificationv1.Receiver, ready *metav1.Condition) Remark {
	if ready == nil {
		return Remark{Message: "nobody has looked at it yet", Next: "wait a moment; if it stays so, see whether the control plane runs the controller receiver"}
	}
	object := r.Name + inNamespace(r.Namespace)
	out := Remark{Message: ready.Message, Next: "put right what it says: flotilla describe receiver " + object}
	switch ready.Reason {
	case notificationv1.TokenNotFoundReason:
		out.Next = tokenNext(r, ready.Message)
	case "NotListening":
		out.Next = "have an administrator start flotillad serve with --receiver-address, such as :9292"
	case "InvalidCELExpression", notificationv1.ValidationFailedReason:
		out.Next = "correct its spec: flotilla edit receiver " + object
	}
	return out
}

// tokenNext returns what to do about the Secret of a Receiver.
func tokenNext(r *notificationv1.Receiver, message string) string {
	if r.Spec.SecretRef == nil {
		return "name a Secret in spec.secretRef: flotilla edit receiver " + r.Name + inNamespace(r.Namespace)
	}
	secret := r.Spec.SecretRef.Name + inNamespace(r.Namespace)
	if strings.Contains(message, " is not there: ") {
		return fmt.Sprintf("create the Secret %s with the key token, which the sender gets, too", secret)
	}
	for _, key := range []string{"token", "email", "audience"} {
		if strings.Contains(message, " has no "+key+": ") {
			return fmt.Sprintf("add the key %s to the Secret %s", key, secret)
		}
	}
	return "correct the Secret " + secret
}
