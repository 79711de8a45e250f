package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA scales a workload, or a FederatedHPA, by the clock.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=cronfhpa
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="REFERENCE-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="REFERENCE-NAME",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type CronFederatedHPA struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is scaled, and when.
	// +required
	Spec CronFederatedHPASpec `json:"spec"`

	// Status says what was done when.
	// +optional
	Status CronFederatedHPAStatus `json:"status"`
}

// CronFederatedHPAList is a list of CronFederatedHPAs.
//
// +kubebuilder:object:root=true
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the autoscalers.
	Items []CronFederatedHPA `json:"items"`
}

// CronFederatedHPASpec says what is scaled, and when.
type CronFederatedHPASpec struct {
	// ScaleTargetRef is what is scaled: a template on the hub, or a FederatedHPA.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules say when, and to what.
	// +required
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule says when a target is scaled, and to what.
type CronFederatedHPARule struct {
	// Name of the rule, unique in the object. 1 to 32 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Schedule in cron form, such as "0 8 * * 1-5".
	// +required
	Schedule string `json:"schedule"`

	// TargetReplicas to set. Only for templates; nil: unchanged.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas to set as minReplicas. Only for a FederatedHPA; nil:
	// unchanged.
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas to set as maxReplicas. Only for a FederatedHPA; nil:
	// unchanged.
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend true skips the rule. Default false.
	// +optional
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone of the schedule, such as Europe/Berlin. Nil: that of the server.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is how many successful runs are kept in status, 1 to
	// 32. Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is how many failed runs are kept in status, 0 to 32.
	// Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus says what was done when.
type CronFederatedHPAStatus struct {
	// ExecutionHistories are the runs of each rule.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory are the runs of one rule.
type ExecutionHistory struct {
	// RuleName is the rule.
	// +required
	RuleName string `json:"ruleName"`

	// NextExecutionTime is when it runs next. Nil: never, or suspended.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are the last successful runs, newest first.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are the last failed runs, newest first.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is a run that scaled its target.
type SuccessfulExecution struct {
	// ScheduleTime is when it was due.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it ran.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// AppliedReplicas is the number that was set. Nil: none was.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is the maxReplicas that was set. Nil: none was.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is the minReplicas that was set. Nil: none was.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is a run that did not scale its target.
type FailedExecution struct {
	// ScheduleTime is when it was due.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it ran.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// Message says what went wrong.
	// +required
	Message string `json:"message"`
}
