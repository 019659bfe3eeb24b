"""What a forked child may do: everything when its parent had not used a device, nothing on it otherwise."""

import torch


def test_child_works_when_the_parent_had_not_initialised(run_child):
    result = run_child(
        """
        import os, sys
        import torch_npu_lite
        torch.npu.device_count(); torch.manual_seed(1)
        if pid := os.fork():
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        assert torch.ones(2, device="npu").sum().item() == 2
        """
    )
    assert result.returncode == 0, result.stderr


def test_child_gets_a_clear_error_when_the_parent_had_initialised(run_child):
    result = run_child(
        """
        import os, sys
        import torch_npu_lite
        x = torch.ones(2, device="npu")
        if pid := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert x.sum().item() == 2
            sys.exit(code)
        assert torch.npu._is_in_bad_fork() and not torch.npu.is_initialized()
        torch.manual_seed(1)
        for use in (lambda: torch.ones(2, device="npu"), lambda: x.cpu(), lambda: torch.npu.synchronize()):
            try:
                use()
            except RuntimeError as error:
                assert "fork" in str(error), error
            else:
                sys.exit(3)
        del x   # the memory is the parent's
        """
    )
    assert result.returncode == 0, result.stderr


def test_pinned_memory_in_a_child(run_child):
    result = run_child(
        """
        import os, sys
        import torch_npu_lite
        pinned = torch.arange(4.0).pin_memory()
        torch.ones(1, device="npu")
        if pid := os.fork():
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        assert pinned.sum().item() == 6
        del pinned
        """
    )
    assert result.returncode == 0, result.stderr


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.tensor(float(index * index))


def test_dataloader_workers_after_initialisation():
    torch.ones(1, device="npu")
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, pin_memory=True)
    total = sum(batch.npu(non_blocking=True).sum() for batch in loader)
    assert total.item() == sum(i * i for i in range(16))
