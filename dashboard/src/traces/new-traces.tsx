import { counted } from '../format/count.ts';
import { ArrowUpIcon } from '../parts/icons.tsx';

interface NewTracesProps {
  count: number;
  onShow: () => void;
}

/** Floats over the list, so that the list does not move. */
export function NewTraces({ count, onShow }: NewTracesProps) {
  return (
    <div class="new-traces">
      <button type="button" class="button primary pill" onClick={onShow}>
        <ArrowUpIcon />
        {counted(count, 'new trace')}
      </button>
    </div>
  );
}
