package v1alpha1

// FailoverBehavior says when and how workloads move off a cluster.
type FailoverBehavior struct {
	// Application is about an application that is unhealthy in one cluster. Nil:
	// it stays there.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster is about a cluster whose taints the template does not tolerate.
	// Nil: the defaults of its fields.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`

	// FailBackSeconds is for how long a cluster that was left because it, or the
	// application there, failed has to be well again before the template is placed
	// anew, and there rather than elsewhere. Nil: it does not return by itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailBackSeconds *int32 `json:"failBackSeconds,omitempty"`
}

// ApplicationFailoverBehavior says how an unhealthy application is moved.
type ApplicationFailoverBehavior struct {
	// DecisionConditions say when it is moved.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode says what becomes of the old copy. Default Gracefully.
	// +optional
	// +kubebuilder:default="Gracefully"
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is how long the old copy may stay while the new one is
	// not healthy yet. Seconds; nil: the server's default. Only with purge mode
	// Gracefully.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation hands values of the old copy's status to the new one.
	// Nil: none.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// ClusterFailoverBehavior says how a workload leaves a failed cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode says what becomes of the old copy. Default Gracefully.
	// +optional
	// +kubebuilder:default="Gracefully"
	// +kubebuilder:validation:Enum=Directly;Gracefully
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation hands values of the old copy's status to the new one.
	// Nil: none.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions say when an unhealthy application is moved.
type DecisionConditions struct {
	// TolerationSeconds is how long it may be unhealthy. Seconds, default 300; 0
	// moves it at once.
	// +optional
	// +kubebuilder:default=300
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// StatePreservation hands values of an old copy's status to its successor.
type StatePreservation struct {
	// Rules each take one value.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule takes one value out of the old copy's status and puts
// it into a label of the new copy.
type StatePreservationRule struct {
	// AliasLabelName is the key of the label on the new copy.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath is where the value stands in the status, in kubectl's JSONPath
	// form, such as {.availableReplicas}.
	// +required
	JSONPath string `json:"jsonPath"`
}

// PurgeMode says what becomes of a workload in the cluster that it leaves.
type PurgeMode string

const (
	// PurgeModeDirectly removes it at once.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully removes it once its successor is healthy or the grace
	// period is over.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever leaves it to the user.
	PurgeModeNever PurgeMode = "Never"
)
