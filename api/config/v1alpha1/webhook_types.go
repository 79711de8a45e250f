package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterWebhookConfiguration names servers that answer questions
// about kinds of resources.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={karmada-io}
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are the servers and what each is asked.
	// +required
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// ResourceInterpreterWebhookConfigurationList is a list of
// ResourceInterpreterWebhookConfigurations.
//
// +kubebuilder:object:root=true
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the configurations.
	Items []ResourceInterpreterWebhookConfiguration `json:"items"`
}

// ResourceInterpreterWebhook is a server and what it is asked.
type ResourceInterpreterWebhook struct {
	// Name of the webhook, a DNS name, unique over all configurations.
	// +required
	Name string `json:"name"`

	// ClientConfig says how the server is reached.
	// +required
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules say which questions about which kinds it is asked. Empty: none.
	// +optional
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// TimeoutSeconds is how long an answer may take. Seconds, 1 to 30; nil: 10.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// InterpreterContextVersions are the versions of ResourceInterpreterContext
	// that the server understands, best first. Must have v1alpha1.
	// +required
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations says which questions about which kinds a server is asked.
type RuleWithOperations struct {
	// Operations are the questions. "*" means all and stands alone.
	// +required
	Operations []InterpreterOperation `json:"operations"`

	Rule `json:",inline"`
}

// Rule names kinds.
type Rule struct {
	// APIGroups of the kinds; "" is the core group. "*" means all and stands alone.
	// +required
	APIGroups []string `json:"apiGroups"`

	// APIVersions of the kinds. "*" means all and stands alone.
	// +required
	APIVersions []string `json:"apiVersions"`

	// Kinds. "*" means all and stands alone.
	// +required
	Kinds []string `json:"kinds"`
}

// InterpreterOperation is a question about a resource.
type InterpreterOperation string

const (
	// InterpreterOperationAll stands for every question.
	InterpreterOperationAll InterpreterOperation = "*"
	// InterpreterOperationInterpretReplica asks for replicas and what one needs.
	InterpreterOperationInterpretReplica InterpreterOperation = "InterpretReplica"
	// InterpreterOperationInterpretComponent asks for the parts of a workload.
	InterpreterOperationInterpretComponent InterpreterOperation = "InterpretComponent"
	// InterpreterOperationReviseReplica asks for the object with other replicas.
	InterpreterOperationReviseReplica InterpreterOperation = "ReviseReplica"
	// InterpreterOperationInterpretStatus asks for the status to report.
	InterpreterOperationInterpretStatus InterpreterOperation = "InterpretStatus"
	// InterpreterOperationPrune is declared for clients that know it; never asked.
	InterpreterOperationPrune InterpreterOperation = "Prune"
	// InterpreterOperationRetain asks what of the member's object stays.
	InterpreterOperationRetain InterpreterOperation = "Retain"
	// InterpreterOperationAggregateStatus asks for the statuses put together.
	InterpreterOperationAggregateStatus InterpreterOperation = "AggregateStatus"
	// InterpreterOperationInterpretHealth asks for the object's health.
	InterpreterOperationInterpretHealth InterpreterOperation = "InterpretHealth"
	// InterpreterOperationInterpretDependency asks what the object refers to.
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
)
