"""What a naive grader does with ranks: threads of one process, which count their own bytes."""

import threading

import numpy as np


class Comm:
    """The course's two exchanges; what it sent, the answer is trusted to leave alone."""

    def __init__(self, rank: int, board: list, barrier: threading.Barrier):
        self.rank, self.ranks, self.board, self.barrier = rank, len(board), board, barrier
        self.sent_bytes = 0

    def _all(self, mine) -> list:
        self.board[self.rank] = mine
        self.barrier.wait()
        found = list(self.board)
        self.barrier.wait()
        return found

    def exchange_counts(self, counts):
        return np.array([one[self.rank] for one in self._all(np.asarray(counts))])

    def send_rows(self, rows, send, receive):
        owner = rows if rows.base is None else rows.base
        self.sent_bytes += owner.nbytes
        pieces = self._all(np.split(rows, np.cumsum(send)[:-1]))
        return np.concatenate([one[self.rank] for one in pieces])


def ranks_pass(question, source: str, same) -> bool:
    space = {"np": np}
    exec(source, space)
    for case in question.public:
        wanted = question.reference(case.each)
        board, results = [None] * len(case.each), [None] * len(case.each)
        barrier = threading.Barrier(len(board))
        comms = [Comm(rank, board, barrier) for rank in range(len(board))]

        def one(rank, case=case, comms=comms, results=results):
            results[rank] = space[question.entry](comms[rank], *case.each[rank])

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(board))]
        for step in (threading.Thread.start, threading.Thread.join):
            list(map(step, threads))
        most = question.most_bytes(case.each) + sum(given[0].nbytes for given in case.each)
        if not all(map(same, results, wanted)) or (np.array([c.sent_bytes for c in comms]) > most).any():
            return False
    return True
