// Package lfs fetches files of which a commit has only a pointer, as Git LFS
// keeps their content beside the repository.
//
// In go pointers, and the repository that they are from; out comes the content,
// by its hash. The server is asked over http or https by LFS's batch API, in its
// basic transfer. Where it says that the content is, is the word of a stranger:
// it is reached as any host that a repository names, and gets the repository's
// credentials only if it is of the same origin. Content of another size or hash
// than the pointer's is refused, and the sum of all is bounded beforehand.
package lfs
