package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload by its load in all clusters together.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=fhpa
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="REFERENCE-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="REFERENCE-NAME",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name="MINPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name="MAXPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name="REPLICAS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type FederatedHPA struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is scaled, by which measure.
	// +required
	Spec FederatedHPASpec `json:"spec"`

	// Status says how scaling goes.
	// +optional
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
}

// FederatedHPAList is a list of FederatedHPAs.
//
// +kubebuilder:object:root=true
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the autoscalers.
	Items []FederatedHPA `json:"items"`
}

// FederatedHPASpec says what is scaled, by which measure.
type FederatedHPASpec struct {
	// ScaleTargetRef is the template on the hub that is scaled.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the smallest number of replicas. Nil: 1.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the largest number of replicas.
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics to scale by; the one that asks for most replicas counts. Empty: 80 %
	// of the requested CPU.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior bounds how fast replicas come and go. Nil: the defaults of
	// HorizontalPodAutoscaler.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}
