package join

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// accountOf returns the name of the account in the member as which the hub acts.
func accountOf(cluster string) string { return "karmada-" + cluster }

// roleOf returns the name of that account's role.
func roleOf(cluster string) string { return "karmada-controller-manager:" + accountOf(cluster) }

// ImpersonatorSecret returns the name of the Secret on the hub with the token of
// ImpersonatorAccount.
func ImpersonatorSecret(cluster string) string { return cluster + "-impersonator" }

// systemLabels are the labels of objects that belong to the control plane.
func systemLabels() map[string]string {
	return map[string]string{workv1alpha2.KarmadaSystemLabel: workv1alpha2.KarmadaSystemLabelValue}
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: systemLabels()}}
}

func hubSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()},
		Data:       data,
	}
}

// tokenOf returns a Secret that the member fills with an account's token.
func tokenOf(namespace, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: account, Labels: systemLabels(),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// accounts returns the objects in a member that the hub needs to act there, in
// the order in which they are created.
func accounts(cluster, namespace string) []client.Object {
	account := accountOf(cluster)
	out := []client.Object{namespaceOf(namespace)}
	for _, name := range []string{ImpersonatorAccount, account} {
		out = append(out,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: systemLabels()}},
			tokenOf(namespace, name),
		)
	}
	role := metav1.ObjectMeta{Name: roleOf(cluster), Labels: systemLabels()}
	return append(out,
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{rbacv1.VerbAll}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{rbacv1.NonResourceAll}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		},
	)
}
