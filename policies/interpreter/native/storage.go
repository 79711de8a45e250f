package native

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

var (
	volumeName = []string{"spec", "volumeName"}
	claimRef   = []string{"spec", "claimRef"}
	phasePath  = []string{"status", "phase"}
)

// volumeClaimConditions show that something is underway with a claim.
var volumeClaimConditions = []rules.Merge{
	{Type: string(corev1.PersistentVolumeClaimResizing), Wanted: corev1.ConditionFalse},
	{Type: string(corev1.PersistentVolumeClaimFileSystemResizePending), Wanted: corev1.ConditionFalse},
}

// persistentVolumeClaim returns the rules for a PersistentVolumeClaim: it is Lost
// if it is in any cluster, and Bound only once it is in every cluster.
func persistentVolumeClaim() kinds.Rules {
	return kinds.Rules{
		Retain:  rules.DropChanged(volumeName...),
		Retains: rules.Has(volumeName...),
		Health:  volumeClaimHealthy,
		Aggregate: rules.Aggregate(
			rules.Phase(string(corev1.ClaimPending), string(corev1.ClaimLost), rules.Others, string(corev1.ClaimPending), string(corev1.ClaimBound)),
			rules.Conditions(volumeClaimConditions...)),
	}
}

func persistentVolume() kinds.Rules {
	return kinds.Rules{
		Retain:  rules.DropChanged(claimRef...),
		Retains: rules.Has(claimRef...),
		Aggregate: rules.Aggregate(rules.Phase(string(corev1.VolumePending), string(corev1.VolumeFailed), rules.Others, string(corev1.VolumePending),
			string(corev1.VolumeAvailable), string(corev1.VolumeBound), string(corev1.VolumeReleased))),
	}
}

func volumeClaimHealthy(obj kinds.Object) (bool, error) {
	return rules.Text(obj.Object, phasePath...) == string(corev1.ClaimBound), nil
}
