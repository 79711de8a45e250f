// Package massfailure says on Clusters that so many were lost at once that nothing is moved
// off them.
//
// In go the Clusters; out comes the condition MassFailureSuspected of each, which this loop
// alone writes: True while it is suspected, left out otherwise. What is suspected is decided
// by policies/failover, by which placements go, too. The loop moves nothing itself.
package massfailure
